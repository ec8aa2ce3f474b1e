"""Embed, search, rank: how a question finds what was stored. Knows partitions, not facts."""

from .fingerprint import match, recorded, stamp
from .gate import GatedStore
from .guard import SpaceGuard
from .lean import Leaning
from .rank import dots
from .recall import ALL, Answer, Hit, Recall

__all__ = [
    "ALL",
    "Answer",
    "GatedStore",
    "Hit",
    "Leaning",
    "Recall",
    "SpaceGuard",
    "dots",
    "match",
    "recorded",
    "stamp",
]
