"""The in-memory twin of the memo store, for tests and simulations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from amrita_plugin_memory.kernel.clock import Clock, SystemClock

from .ports import MemoRow, Stamp


@dataclass(slots=True)
class MemoryMemoStore:
    """Memos in a dict. ``reads`` counts how often contents were fetched."""

    clock: Clock = field(default_factory=SystemClock)
    rows: dict[str, MemoRow] = field(default_factory=dict)
    reads: int = 0

    async def stamp(self, key: str) -> Stamp | None:
        """Version and time of the row; None when there is none."""
        row = self.rows.get(key)
        return Stamp(row.version, row.updated_at) if row else None

    async def read(self, key: str) -> MemoRow | None:
        """The row; None when there is none."""
        self.reads += 1
        return self.rows.get(key)

    async def change(self, key: str, edit: Callable[[str], str]) -> MemoRow:
        """Replace the content by what ``edit`` makes of it."""
        old = self.rows.get(key)
        content = edit(old.content if old else "")
        row = MemoRow(key, content, old.version + 1 if old else 1, self.clock.now())
        self.rows[key] = row
        return row
