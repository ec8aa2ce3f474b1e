"""Embed, search, rank: how a question finds what was stored. Knows partitions, not facts."""

from .fingerprint import match, recorded, stamp
from .gate import GatedStore
from .guard import SpaceGuard
from .rank import dots
from .recall import Answer, Hit, Recall

__all__ = ["Answer", "GatedStore", "Hit", "Recall", "SpaceGuard", "dots", "match", "recorded", "stamp"]
