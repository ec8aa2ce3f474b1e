"""Embed, search, rank: how a question finds what was stored. Knows partitions, not facts."""

from typing import TYPE_CHECKING

from amrita_plugin_memory.kernel.lazy import lazily

if TYPE_CHECKING:
    from .fingerprint import match, recorded, stamp
    from .gate import GatedStore
    from .guard import SpaceGuard
    from .lean import Leaning, leaning_of
    from .rank import dots
    from .recall import ALL, Answer, Hit, Recall
else:
    __getattr__ = lazily(
        __name__,
        {
            "fingerprint": ("match", "recorded", "stamp"),
            "gate": ("GatedStore",),
            "guard": ("SpaceGuard",),
            "lean": ("Leaning", "leaning_of"),
            "rank": ("dots",),
            "recall": ("ALL", "Answer", "Hit", "Recall"),
        },
    )

__all__ = [
    "ALL",
    "Answer",
    "GatedStore",
    "Hit",
    "Leaning",
    "Recall",
    "SpaceGuard",
    "dots",
    "leaning_of",
    "match",
    "recorded",
    "stamp",
]
