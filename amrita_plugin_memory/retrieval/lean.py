"""Soft preferences: days that a question names, and, when asked for, what is new or important. Pure apart from caching.

All are counted as if the question were covered by that much more, so that they weigh the same beside every model.
None of them can hide the row that answers best without them; that one stays in the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from .dates import Span
from .rank import Floats, falling
from .ready import Ready

if TYPE_CHECKING:
    from amrita_plugin_memory.settings.file import RecallSettings

MENTIONED: Final = 0.2  # the text speaks of a day asked for
STORED: Final = 0.1  # it was stored or changed then
READ: Final = 200  # best rows whose texts are read for dates
MOST: Final = 0.1  # what recency or importance may add at most


@dataclass(frozen=True, slots=True)
class Leaning:
    """Weights from 0 (off, as measured best) to 0.1: of being new, halving every ``half_life`` days, and important."""

    recency: float = 0.0
    half_life: float = 90.0
    importance: float = 0.0


NONE: Final = Leaning()


def leaning_of(wish: RecallSettings) -> Leaning:
    """What config.toml asks for."""
    return Leaning(recency=wish.recency, half_life=wish.recency_half_life_days, importance=wish.importance)


def gain_of(ready: Ready, scores: Floats, wanted: Sequence[Span], *, now: datetime, leaning: Leaning) -> Floats:
    """What each row gains in all, shape (n,)."""
    gain = _by_days(ready, scores, wanted, now) if wanted else np.zeros(len(scores), dtype=np.float32)
    return gain if leaning == NONE else gain + _by_leaning(ready, leaning, now)


def _by_days(ready: Ready, scores: Floats, wanted: Sequence[Span], now: datetime) -> Floats:
    gain = np.zeros(len(scores), dtype=np.float32)
    for i in range(len(scores)):
        if ready.stored_in(i, wanted, now.tzinfo):
            gain[i] = STORED
    for taken, i in enumerate(falling(scores + gain, first=READ)):
        if taken >= READ:
            break
        if ready.mentions(i, wanted, now):
            gain[i] = MENTIONED
    return gain


def _by_leaning(ready: Ready, leaning: Leaning, now: datetime) -> Floats:
    gain = np.zeros(len(ready.rows), dtype=np.float32)
    recency, importance = min(leaning.recency, MOST), min(leaning.importance, MOST)
    for i, row in enumerate(ready.rows):
        age = ready.age(i, now.date()) if recency else None
        if age is not None:
            gain[i] += recency * 0.5 ** (age / max(leaning.half_life, 1.0))
        rank = row.metadata.get("importance")
        gain[i] += importance * (1.0 if rank == "high" else 0.0 if rank == "low" else 0.5)
    return gain
