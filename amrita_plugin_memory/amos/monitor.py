"""How a root is doing: a snapshot in numbers, a health check in words, and the two plain logs of the protocol."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amrita_plugin_memory.amos.ground import formats, layout
from amrita_plugin_memory.kernel.clock import Clock, SystemClock, iso_seconds
from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.kernel.text import cut, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import PurePosixPath

    from amrita_plugin_memory.amos.ground import FileRoot

MAX_LOG: Final = 1024 * 1024  # bytes; then the log is set aside as ``….1``
LOW_SPACE: Final = 64 * 1024 * 1024
_TAIL: Final = 16 * 1024
_PROTOCOL: Final = "2.0.0"


@dataclass(frozen=True, slots=True)
class MonitorSnapshot:
    """Numbers of one moment; ``cache_version`` is the highest of all scopes, ``size`` bytes of all files."""

    timestamp: str
    file_count: int
    task_queue: dict[str, int]
    last_error: str | None
    cache_version: int
    size: int = 0
    actors: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """``ok`` when every check is; a check is "ok" or one sentence saying what is wrong."""

    ok: bool
    checks: dict[str, str]


@dataclass(frozen=True, slots=True)
class Monitor:
    """Watches one root."""

    files: FileRoot
    clock: Clock = field(default_factory=SystemClock)

    async def snapshot(self) -> MonitorSnapshot:
        """Count what is there."""
        return await asyncio.to_thread(self._snapshot)

    async def health(self) -> Health:
        """Check what a root needs to work."""
        return await asyncio.to_thread(self._health)

    async def record_event(self, event_type: str, data: Mapping[str, Any] | None = None) -> None:
        """A line in ``logs/system.log``; ids and numbers, never contents."""
        body = formats.dump_line(dict(data or {})).decode()
        await self._log(layout.SYSTEM_LOG, f"[{one_line(event_type)}] {body}")

    async def record_error(self, error: BaseException, context: str | None = None) -> None:
        """A line in ``logs/error.log``: the kind of the error, and its words when they are our own."""
        words = f": {cut(one_line(str(error)), 200)}" if isinstance(error, AmritaMemoryError) else ""
        where = f"{one_line(context)} " if context else ""
        await self._log(layout.ERROR_LOG, f"{where}{type(error).__name__}{words}\n")

    async def _log(self, path: PurePosixPath, line: str) -> None:
        text = f"[{iso_seconds(self.clock.now())}] {line}"
        await asyncio.to_thread(self._append, path, formats.encode(text))

    def _append(self, path: PurePosixPath, data: bytes) -> None:
        with self.files.lock(path):
            stamp = self.files.stamp(path)
            if stamp is not None and stamp.size + len(data) > MAX_LOG:
                self.files.move(path, path.with_name(f"{path.name}.1"))
            self.files.append(path, data)

    def _snapshot(self) -> MonitorSnapshot:
        count = size = 0
        for folder, names, files in os.walk(self.files.root):
            names[:] = [name for name in names if not name.startswith(".")]
            count += len(files)
            size += sum(_size(folder, name) for name in files)
        versions = formats.load_object(self.files.read(layout.CACHE_VERSION) or b"{}") or {}
        numbers = [number for number in versions.values() if isinstance(number, int) and not isinstance(number, bool)]
        return MonitorSnapshot(
            timestamp=iso_seconds(self.clock.now()),
            file_count=count,
            task_queue={state: self._tasks(state) for state in layout.TASK_STATES},
            last_error=self._last_error(),
            cache_version=max(numbers, default=1),
            size=size,
            actors=len(self.files.dirs(layout.USERS)),
        )

    def _tasks(self, state: str) -> int:
        names = self.files.names(layout.TASKS / state)
        return sum(name.startswith("task_") and name.endswith(".json") for name in names)

    def _last_error(self) -> str | None:
        stamp = self.files.stamp(layout.ERROR_LOG)
        if stamp is None:
            return None
        data = self.files.read(layout.ERROR_LOG, start=max(stamp.size - _TAIL, 0)) or b""
        lines = [line for line in formats.decode(data).split("\n") if line.strip()]
        return lines[-1] if lines else None

    def _health(self) -> Health:
        checks = {
            "version": self._version_health(),
            "manifest": self._manifest_health(),
            "writable": "ok" if os.access(self.files.root, os.W_OK) else "根目录不可写，请检查权限",
            "space": "ok" if shutil.disk_usage(self.files.root).free >= LOW_SPACE else "磁盘空间不足，请清理",
            "tasks": "ok"
            if not self.files.names(layout.TASKS / "corrupt")
            else "有任务文件已损坏并被隔离，请查看 tasks/corrupt",
        }
        return Health(all(check == "ok" for check in checks.values()), checks)

    def _version_health(self) -> str:
        text = (self.files.read_text(layout.VERSION) or "").strip()
        return "ok" if text == _PROTOCOL else f"协议版本不是 {_PROTOCOL}，请用 amos doctor 检查"

    def _manifest_health(self) -> str:
        manifest = formats.load_object(self.files.read(layout.MANIFEST) or b"")
        return "ok" if manifest is not None else "manifest.json 缺失或已损坏，请用 amos doctor --fix 修复"


def _size(folder: str, name: str) -> int:
    try:
        return os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - a hundred thousand of them
    except OSError:
        return 0
