"""One writer at a time for a file, across threads and processes: ``{path}.lock``.

The lock file is what the reference implementation writes (``{"pid", "ts"}``, created O_EXCL) with three keys more:
``token`` (so that nobody deletes another's lock), ``host`` and ``start`` (so that a dead holder, or a stranger that
inherited its process id, is recognised at once). Waiters of one process queue on a lock in memory first and only the
head of the queue looks at the disk.

A holder on this machine that is alive is never pushed aside, however slow it is; one on another machine, or the
reference implementation, counts as gone when its ``ts`` is older than `STALE` seconds. Whoever holds a lock for long
passes ``keep_alive=True``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

from amrita_plugin_memory.kernel.errors import Locked

from .holders import STALE, Holder, clear_if_abandoned, is_ours, unlink_if_ours

TIMEOUT: Final = 30.0  # seconds; a queue of fifty on a slow disk takes ten
_FIRST_WAIT: Final = 0.0005
_LONGEST_WAIT: Final = 0.02


@dataclass(slots=True)
class LockTable:
    """The queues in memory: one lock for each path that is held or awaited in this process."""

    _guard: threading.Lock = field(default_factory=threading.Lock)
    _queues: dict[str, tuple[threading.Lock, int]] = field(default_factory=dict[str, tuple[threading.Lock, int]])
    _me: Holder | None = None

    def me(self) -> Holder:
        """How lock files name the process that asks; found again after a fork."""
        if self._me is None or self._me.pid != os.getpid():
            self._me = Holder.current()
        return self._me

    def join(self, key: str) -> threading.Lock:
        """The lock to queue on for ``key``; every `join` is answered by one `leave`."""
        with self._guard:
            queue, users = self._queues.get(key, (None, 0))
            queue = queue or threading.Lock()
            self._queues[key] = (queue, users + 1)
            return queue

    def leave(self, key: str) -> None:
        """Forget the lock when nobody else uses it."""
        with self._guard:
            queue, users = self._queues[key]
            if users == 1:
                del self._queues[key]
            else:
                self._queues[key] = (queue, users - 1)


@dataclass(slots=True)
class PathLock:
    """The lock of one path, for ``with`` (in a worker thread) and ``async with`` (on the event loop).

    Raises:
        Locked: on entering, when the lock could not be had within ``timeout`` seconds.

    """

    path: Path
    table: LockTable
    timeout: float = TIMEOUT
    keep_alive: bool = False
    file: Path = field(init=False)
    _token: str = field(default="", init=False)
    _queue: threading.Lock | None = field(default=None, init=False)
    _stop: threading.Event | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.file = Path(f"{self.path}.lock")

    def __enter__(self) -> PathLock:
        end = time.monotonic() + self.timeout
        queue = self.table.join(str(self.path))
        if not queue.acquire(timeout=max(self.timeout, 0.0)):
            self.table.leave(str(self.path))
            raise _busy(self.path)
        self._queue = queue
        try:
            for wait in _waits():
                if self._try_once():
                    break
                self._give_up_after(end)
                time.sleep(wait)
        except BaseException:
            self._dequeue()
            raise
        self._keep()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    async def __aenter__(self) -> PathLock:
        end = time.monotonic() + self.timeout
        queue = self.table.join(str(self.path))
        attempt: asyncio.Future[bool] | None = None
        try:
            for wait in _waits():
                if self._queue is None and queue.acquire(blocking=False):
                    self._queue = queue
                if self._queue is not None:
                    attempt = asyncio.ensure_future(asyncio.to_thread(self._try_once))
                    if await asyncio.shield(attempt):
                        break
                self._give_up_after(end)
                await asyncio.sleep(wait)
        except BaseException:
            if attempt is not None:
                await asyncio.wait({attempt})  # its thread may be about to make the lock file
                await asyncio.to_thread(unlink_if_ours, self.file, self._token)
            self._dequeue(joined=True)
            raise
        self._keep()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.shield(asyncio.to_thread(self.release))

    def refresh(self) -> bool:
        """Write a new ``ts``, so that another machine sees the holder alive; False when the lock is no longer ours."""
        if not is_ours(self.file, self._token):
            return False
        with contextlib.suppress(OSError):
            fd = os.open(self.file, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(fd, self.table.me().record(self._token))
            finally:
                os.close(fd)
        return True

    def release(self) -> None:
        """Give the lock back; a lock that has become another's is left alone."""
        if self._stop is not None:
            self._stop.set()
            self._stop = None
        try:
            unlink_if_ours(self.file, self._token)
        finally:
            self._dequeue()

    def _try_once(self) -> bool:
        self._token = self._token or secrets.token_hex(8)
        try:
            fd = os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileNotFoundError:  # the folder was deleted meanwhile
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return False
        except FileExistsError:
            return clear_if_abandoned(self.file) and self._try_once()
        except PermissionError:
            if os.name != "nt":  # Windows answers so while the file is being deleted
                raise
            return False
        try:
            os.write(fd, self.table.me().record(self._token))
        finally:
            os.close(fd)
        return True

    def _give_up_after(self, end: float) -> None:
        if time.monotonic() >= end:
            raise _busy(self.path)

    def _dequeue(self, *, joined: bool = False) -> None:
        if self._queue is not None:
            self._queue.release()
            joined = True
        self._queue, self._token = None, ""
        if joined:
            self.table.leave(str(self.path))

    def _keep(self) -> None:
        if self.keep_alive:
            self._stop = threading.Event()
            threading.Thread(target=_heartbeat, args=(self, self._stop), daemon=True).start()


@contextmanager
def with_lock(path: Path, *, timeout: float = TIMEOUT) -> Generator[PathLock]:
    """Hold ``{path}.lock`` for a ``with`` body; for code outside a `FileRoot`, which keeps its own table."""
    with PathLock(path, LockTable(), timeout=timeout) as lock:
        yield lock


def _heartbeat(lock: PathLock, stop: threading.Event) -> None:
    while not stop.wait(STALE / 4):
        if not lock.refresh():
            return


def _waits() -> Generator[float]:
    wait = _FIRST_WAIT
    while True:
        yield wait * (0.5 + secrets.randbelow(1000) / 1000)
        wait = min(wait * 2, _LONGEST_WAIT)


def _busy(path: Path) -> Locked:
    return Locked(f"{path.name} 正被其他进程写入，请稍后再试")
