"""The one client of a store: opened on first need, reopened when out of date, its writes in single file.

``era`` moves whenever another process may have written, so that whatever was cached before is not trusted any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from typing import TypeVar

from amrita_plugin_memory.kernel.errors import AmritaMemoryError, Locked, StoreUnavailable, Unavailable

from . import connection as chroma
from .calls import Calls, Stale
from .connection import Connect, Connection
from .memory import READ_ONLY

T = TypeVar("T")
logger = logging.getLogger("amrita_memory.vectordb")
IMPORT_TIMEOUT = 120.0  # importing chromadb takes 2-4 s of CPU, and many times that on a first start under load
DRAIN_TIMEOUT = 5.0  # seconds that closing waits for calls under way


class Link:
    """Reads and writes of one process. Not for use after a fork: a client that was opened before hangs in the child."""

    def __init__(self, connect: Connect, calls: Calls, *, writable: bool) -> None:
        self._connect = connect
        self._calls = calls
        self._writable = writable
        self._connection: Connection | None = None
        self._retired: list[Connection] = []
        self._closings: set[asyncio.Task[None]] = set()
        self._drained = asyncio.Event()
        self._opening = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._stamp: int | None = None
        self._outdated = False
        self._closed = False
        self._process = os.getpid()
        self.era = 0

    @property
    def writable(self) -> bool:
        """False for a read-only opener."""
        return self._writable

    @property
    def certain(self) -> bool:
        """True when a change by another process cannot go unseen: a local directory with a readable counter."""
        return self._stamp is not None

    def check(self) -> None:
        """Look whether another process has written since; costs microseconds and no request.

        While a write of ours is under way its commits cannot be told from others', so the state at its start counts.
        """
        if self._connection is None or self._connection.stamp is None or self._writing.locked():
            return
        self._compare(self._connection, self._connection.stamp.read())

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a reading call; once more after opening again when this process was out of date."""
        self._require_usable()
        self.check()
        try:
            return await self._run(work)
        except Stale:
            self._distrust(self._stamp, outdated=True)
            return await self._run(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run a writing call, alone. What the caller does before its next ``await`` happens before any other write."""
        self._require_usable()
        if not self._writable:
            raise Locked(READ_ONLY)
        async with self._writing:
            connection = await self._ready()
            self._compare(connection, self._read_stamp())
            connection = await self._ready()
            before = self._stamp
            commits = connection.commits
            try:
                result = await self._once_more(work)
            except Unavailable:
                self._distrust(self._read_stamp(), outdated=True)
                raise
            except AmritaMemoryError:
                self._adopt(before, connection.commits - commits)
                raise
            except BaseException:
                self._distrust(self._read_stamp(), outdated=True)
                raise
            self._adopt(before, connection.commits - commits)
            return result

    async def settled(self) -> None:
        """Wait until no write is under way."""
        async with self._writing:
            pass

    async def alone(self, work: Callable[[], object]) -> None:
        """Run ``work`` with the database closed and no call under way; skipped when calls do not come back."""
        async with self._writing, self._opening:
            self.retire()
            if await self._drain():
                await self._calls.run(work)

    async def aclose(self) -> None:
        """Close the client after the calls that are under way."""
        self._closed = True
        async with self._opening:
            self.retire()
            await self._drain()

    def retire(self) -> None:
        """Forget the connection; it is closed after the last call that uses it. The next call opens a new one."""
        old, self._connection = self._connection, None
        self._stamp = None
        self.era += 1
        if old is not None:
            self._retired.append(old)
            self._drained.clear()
            self._close_if_idle(old)

    async def _drain(self) -> bool:
        if self._retired:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), DRAIN_TIMEOUT)
        return not self._retired

    async def _once_more(self, work: Callable[[Connection], T]) -> T:
        try:
            return await self._run(work)
        except Stale:
            self._distrust(self._stamp, outdated=True)
            return await self._run(work)

    async def _run(self, work: Callable[[Connection], T]) -> T:
        connection = await self._ready()
        connection.users += 1
        loop = asyncio.get_running_loop()

        def body() -> T:
            try:
                return work(connection)
            finally:
                _tell(loop, self._left, connection)

        return await self._calls.run(body)

    def _left(self, connection: Connection) -> None:
        connection.users -= 1
        self._close_if_idle(connection)

    def _close_if_idle(self, connection: Connection) -> None:
        if connection.users <= 0 and any(old is connection for old in self._retired):
            task = asyncio.create_task(self._close(connection))
            self._closings.add(task)
            task.add_done_callback(self._closings.discard)

    async def _close(self, connection: Connection) -> None:
        await asyncio.to_thread(connection.close)
        self._retired = [old for old in self._retired if old is not connection]
        if not self._retired:
            self._drained.set()

    async def _ready(self) -> Connection:
        self._require_usable()
        if self._connection is not None and not self._outdated:
            return self._connection
        async with self._opening:
            if self._outdated and self._connection is not None:
                self.retire()
            if self._connection is None:
                await self._calls.run(chroma.load, limit=IMPORT_TIMEOUT)
                self._connection = await self._calls.run(self._connect)
                self._outdated = False
                self._stamp = self._read_stamp()
                self.era += 1
        return self._connection

    def _require_usable(self) -> None:
        if self._closed:
            raise StoreUnavailable("向量库已经关闭，请重新启动后再试")
        if os.getpid() != self._process:
            raise StoreUnavailable("这个进程是从机器人分出来的，不能共用它的向量库连接，请在新进程里重新打开")

    def _read_stamp(self) -> int | None:
        connection = self._connection
        return connection.stamp.read() if connection is not None and connection.stamp is not None else None

    def _adopt(self, before: int | None, expected: int) -> None:
        """After a write of ours: trust goes on when nothing but its ``expected`` commits were made in between.

        The first write of a collection and every thousandth row (index saved) commit once or twice more; then caches
        are dropped, but the client's own index is still right. More than that was somebody else.
        """
        now = self._read_stamp()
        if now is None or before is None:
            self._stamp = now
            return
        extra = now - before - expected
        if extra:
            self._distrust(now, outdated=not 0 < extra <= expected)
        self._stamp = now

    def _compare(self, connection: Connection, now: int | None) -> None:
        """Take note of commits that were not ours.

        One alone is no change of rows (those take two): a process opened the directory, or a collection was made,
        renamed or deleted. Then names are looked up again, and the client stays.
        """
        if now == self._stamp:
            return
        alone = now is not None and self._stamp is not None and now - self._stamp == 1
        connection.handles.clear()
        self._distrust(now, outdated=not alone)

    def _distrust(self, stamp: int | None, *, outdated: bool) -> None:
        self.era += 1
        self._stamp = stamp
        self._outdated = self._outdated or outdated


def _tell(loop: asyncio.AbstractEventLoop, left: Callable[[Connection], None], connection: Connection) -> None:
    try:
        loop.call_soon_threadsafe(left, connection)
    except RuntimeError:
        logger.debug("the loop was closed before a call to the store came back")
