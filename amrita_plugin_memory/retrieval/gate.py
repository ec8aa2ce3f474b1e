"""A store whose writes can be listened to and held back, so that a rebuild beside it misses none.

Within one process; between processes the directory lock stands (see vectordb).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from amrita_plugin_memory.kernel.errors import Locked
from amrita_plugin_memory.vectordb.ports import PAGE, Partition, Row, Scalar

if TYPE_CHECKING:
    from amrita_plugin_memory.vectordb.ports import Collection, VectorStore


class _Gate:
    """Writers pass together; the one who holds it is alone. For one event loop."""

    def __init__(self) -> None:
        self._writers = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._free = asyncio.Event()
        self._free.set()
        self.touched: set[str] | None = None

    @asynccontextmanager
    async def writing(self, ids: Sequence[str]) -> AsyncGenerator[None]:
        while not self._free.is_set():
            await self._free.wait()
        self._writers += 1
        self._idle.clear()
        try:
            yield
        finally:
            # Also after an error: earlier batches of a failed write are stored.
            if self.touched is not None:
                self.touched.update(ids)
            self._writers -= 1
            if not self._writers:
                self._idle.set()

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[None]:
        while not self._free.is_set():
            await self._free.wait()
        self._free.clear()
        try:
            await self._idle.wait()
            yield
        finally:
            self._free.set()


class GatedStore:
    """Any store, with a gate before the writes of each collection; reads pass untouched."""

    def __init__(self, inner: VectorStore) -> None:
        self._inner = inner
        self._gates: dict[str, _Gate] = {}
        self._handles: dict[str, GatedCollection] = {}

    async def open(self, name: str, *, create: bool = True) -> GatedCollection | None:
        """The collection, made when missing and ``create``; else None."""
        inner = await self._inner.open(name, create=create)
        return None if inner is None else self._handles.setdefault(name, GatedCollection(inner, self._gate(name)))

    async def names(self) -> list[str]:
        """Names of all collections."""
        return await self._inner.names()

    async def drop(self, name: str) -> None:
        """Remove a collection and what it left on disk; no error when there is none."""
        await self._inner.drop(name)

    async def rename(self, old: str, new: str) -> None:
        """Give a collection another name; ``new`` must be free."""
        await self._inner.rename(old, new)

    async def swap(self, name: str, replacement: str, *, aside: str) -> None:
        """Put ``replacement`` in the place of ``name``, which is kept as ``aside``."""
        await self._inner.swap(name, replacement, aside=aside)

    async def aclose(self) -> None:
        """Close the store."""
        await self._inner.aclose()

    @contextmanager
    def listen(self, name: str) -> Generator[set[str]]:
        """A set that gets the id of every row written or deleted in the body, after it was.

        Raises:
            Locked: somebody listens already, which means: a rebuild of this collection is under way.

        """
        gate = self._gate(name)
        if gate.touched is not None:
            raise Locked("这个记忆库正在重建，请等它完成后再试")
        gate.touched = set()
        try:
            yield gate.touched
        finally:
            gate.touched = None

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncGenerator[None]:
        """Let no write to this collection begin in the body; entered when the last one under way has ended."""
        async with self._gate(name).hold():
            yield

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncGenerator[Collection]:
        """The collection, with no other write to it in the body: for reading, and writing by what was read."""
        inner = await self._inner.open(name)
        assert inner is not None, "open() with create=True gives a collection"
        gate = self._gate(name)
        async with gate.hold():
            yield inner

    def _gate(self, name: str) -> _Gate:
        return self._gates.setdefault(name, _Gate())


class GatedCollection:
    """One collection of a GatedStore."""

    def __init__(self, inner: Collection, gate: _Gate) -> None:
        self._inner = inner
        self._gate = gate

    @property
    def name(self) -> str:
        """Name in the store."""
        return self._inner.name

    async def metadata(self) -> dict[str, Scalar]:
        """The collection's own metadata."""
        return await self._inner.metadata()

    async def annotate(self, changes: Mapping[str, Scalar | None]) -> None:
        """Merge into the collection's metadata; never held back."""
        await self._inner.annotate(changes)

    async def count(self) -> int:
        """Rows in the whole collection."""
        return await self._inner.count()

    async def add(self, rows: Sequence[Row]) -> None:
        """Store new rows; see the port."""
        async with self._gate.writing([row.id for row in rows]):
            await self._inner.add(rows)

    async def update(self, rows: Sequence[Row]) -> None:
        """Change stored rows; see the port."""
        async with self._gate.writing([row.id for row in rows]):
            await self._inner.update(rows)

    async def delete(self, ids: Sequence[str]) -> int:
        """Remove rows; see the port."""
        async with self._gate.writing(ids):
            return await self._inner.delete(ids)

    async def get(self, ids: Sequence[str], *, vectors: bool = False) -> list[Row]:
        """The stored rows among ``ids``, in that order."""
        return await self._inner.get(ids, vectors=vectors)

    async def partition(self, key: str) -> Partition:
        """All rows of a partition."""
        return await self._inner.partition(key)

    async def size(self, key: str) -> int:
        """How many rows a partition has."""
        return await self._inner.size(key)

    def pages(self, *, size: int = PAGE, vectors: bool = False) -> AsyncIterator[list[Row]]:
        """All rows, page by page."""
        return self._inner.pages(size=size, vectors=vectors)


if TYPE_CHECKING:
    from amrita_plugin_memory.vectordb.memory import MemoryStore

    _store: VectorStore = GatedStore(MemoryStore())
