"""Locks by key for one event loop: callers of the same key wait, callers of different keys never meet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager


class KeyedLocks:
    """A pool of asyncio locks that forgets a key when nobody holds or awaits it.

    Not shared between processes: rule 3 of the design asks for a file or database lock there.
    """

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncGenerator[None]:
        """Hold ``key`` for the length of the ``async with`` body."""
        lock, users = self._locks.get(key, (None, 0))
        if lock is None:
            lock = asyncio.Lock()
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            self._release(key)

    def _release(self, key: Hashable) -> None:
        lock, users = self._locks[key]
        if users == 1:
            del self._locks[key]
        else:
            self._locks[key] = (lock, users - 1)

    def __len__(self) -> int:
        """How many keys are held or awaited now."""
        return len(self._locks)
