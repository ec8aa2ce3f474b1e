"""The port of this room: one row a key, replaced as a whole, safe across processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MemoRow:
    """What is stored under one key. ``version`` starts at 1 and grows by one with each change."""

    key: str
    content: str
    version: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells two states of a row apart without reading its content."""

    version: int
    updated_at: datetime


class MemoStore(Protocol):
    """Where memos live. Keys are partition keys (``QQPlatform_Private_1``)."""

    async def stamp(self, key: str) -> Stamp | None:
        """Version and time of the row now, straight from the store; None when there is no row."""
        ...

    async def read(self, key: str) -> MemoRow | None:
        """The row now; None when there is none."""
        ...

    async def change(self, key: str, edit: Callable[[str], str]) -> MemoRow:
        """Replace the content by ``edit(current content or "")`` in one step.

        ``edit`` may run again when another writer came between; what it raises reaches the caller, nothing is changed.
        """
        ...
