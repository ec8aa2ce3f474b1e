"""The audit trail ``events/event_log.jsonl``: ids, names and sizes, never contents; bounded by rotation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amrita_plugin_memory.amos.ground import formats, layout

if TYPE_CHECKING:
    from amrita_plugin_memory.amos.ground import FileRoot

MAX_BYTES: Final = 4 * 1024 * 1024
OLD_LOGS: Final = 3


@dataclass(frozen=True, slots=True)
class EventLog:
    """The log of one root. At ``max_bytes`` it becomes ``event_log.jsonl.1``, that one ``.2``, up to ``OLD_LOGS``."""

    files: FileRoot
    max_bytes: int = MAX_BYTES

    async def append(self, line: Mapping[str, object]) -> None:
        """Add one record."""
        await asyncio.to_thread(self._append, formats.dump_line(line))

    async def read(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest ``limit`` records, oldest first, rotated logs not among them."""
        return await asyncio.to_thread(self._read, limit)

    def _append(self, data: bytes) -> None:
        with self.files.lock(layout.EVENT_LOG):
            stamp = self.files.stamp(layout.EVENT_LOG)
            if stamp is not None and stamp.size + len(data) > self.max_bytes:
                self._rotate()
            self.files.append(layout.EVENT_LOG, data, sync=False)  # a power cut may cost the last lines, never a turn

    def _rotate(self) -> None:
        for number in range(OLD_LOGS - 1, 0, -1):
            self.files.move(_old(number), _old(number + 1))
        self.files.move(layout.EVENT_LOG, _old(1))

    def _read(self, limit: int) -> list[dict[str, Any]]:
        stamp = self.files.stamp(layout.EVENT_LOG)
        if stamp is None or limit <= 0:
            return []
        start = max(stamp.size - limit * 1024, 0)
        data = self.files.read(layout.EVENT_LOG, start=start) or b""
        return formats.load_records(data[data.find(b"\n") + 1 :] if start else data)[-limit:]


def _old(number: int) -> layout.PurePosixPath:
    return layout.EVENT_LOG.with_name(f"{layout.EVENT_LOG.name}.{number}")
