"""The in-memory twin of the store: same promises, no Chroma, nothing on disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from amrita_plugin_memory.kernel.errors import Duplicate, Locked, NotFound, SpaceMismatch

from .ports import PAGE, PARTITION_KEY, Partition, Row, Scalar
from .rows import bare, batches, check_new, partition_of, stored_metadata

if TYPE_CHECKING:
    from .ports import Collection, VectorStore

READ_ONLY = "记忆库是以只读方式打开的，这里不能写入"


@dataclass(slots=True)
class _Table:
    source: str
    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    metadata: dict[str, Scalar] = field(default_factory=dict[str, Scalar])
    dimension: int | None = None


class MemoryStore:
    """Collections in a dict. ``writable=False`` refuses writes as a read-only store on disk does."""

    def __init__(self, *, writable: bool = True) -> None:
        self._tables: dict[str, _Table] = {}
        self._serial = count(1)
        self._writable = writable

    async def open(self, name: str, *, create: bool = True) -> MemoryCollection | None:
        """The collection, made when missing and ``create``; else None."""
        await asyncio.sleep(0)
        if name not in self._tables:
            if not create or not self._writable:
                return None
            self._tables[name] = _Table(f"memory-{next(self._serial)}")
        return MemoryCollection(self, name)

    async def names(self) -> list[str]:
        """Names of all collections."""
        return sorted(self._tables)

    async def drop(self, name: str) -> None:
        """Remove a collection; no error when there is none."""
        self.require_writable()
        self._tables.pop(name, None)

    async def rename(self, old: str, new: str) -> None:
        """Give a collection another name; ``new`` must be free."""
        self.require_writable()
        table = self.table(old)
        if new in self._tables:
            raise Duplicate(f"集合 {new} 已经存在，不能改成这个名字", id=new)
        self._tables[new] = table
        del self._tables[old]

    async def swap(self, name: str, replacement: str, *, aside: str) -> None:
        """Put ``replacement`` in the place of ``name``, which is kept as ``aside``."""
        self.require_writable()
        self.table(replacement)
        await self.rename(name, aside)
        await self.rename(replacement, name)

    async def aclose(self) -> None:
        """Nothing to close."""

    def table(self, name: str) -> _Table:
        """What bears this name now."""
        try:
            return self._tables[name]
        except KeyError:
            raise NotFound(f"向量库里没有集合 {name}，请运行 ambot memory status 查看") from None

    def require_writable(self) -> None:
        """Raise Locked on a read-only store."""
        if not self._writable:
            raise Locked(READ_ONLY)


class MemoryCollection:
    """One collection of a MemoryStore."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def name(self) -> str:
        """Name in the store."""
        return self._name

    @property
    def _table(self) -> _Table:
        return self._store.table(self._name)

    async def metadata(self) -> dict[str, Scalar]:
        """The collection's own metadata."""
        return dict(self._table.metadata)

    async def annotate(self, changes: Mapping[str, Scalar | None]) -> None:
        """Merge into the collection's metadata; None removes a key."""
        self._store.require_writable()
        table = self._table
        table.metadata = stored_metadata({**table.metadata, **changes}) or {}

    async def count(self) -> int:
        """Rows in the whole collection."""
        return len(self._table.rows)

    async def add(self, rows: Sequence[Row]) -> None:
        """Store new rows with vectors; see the port for the errors."""
        self._store.require_writable()
        check_new(rows, vectors_required=True)
        await asyncio.sleep(0)
        table = self._table
        _refuse_known(table, rows)
        _claim_dimension(table, rows)
        for row in rows:
            table.rows[row.id] = replace(row, metadata=stored_metadata(row.metadata) or {})

    async def update(self, rows: Sequence[Row]) -> None:
        """Change stored rows; see the port for the errors."""
        self._store.require_writable()
        check_new(rows, vectors_required=False)
        await asyncio.sleep(0)
        table = self._table
        if any(row.id not in table.rows for row in rows):
            raise NotFound("没有找到要修改的数据，它可能已被删除")
        _claim_dimension(table, rows)
        for row in rows:
            old = table.rows[row.id]
            document = old.document if row.document is None else row.document
            vector = old.vector if row.vector is None else row.vector
            table.rows[row.id] = Row(row.id, document, stored_metadata(row.metadata) or {}, vector)

    async def delete(self, ids: Sequence[str]) -> int:
        """Remove rows; the number that really was there."""
        self._store.require_writable()
        await asyncio.sleep(0)
        table = self._table
        return sum(table.rows.pop(i, None) is not None for i in dict.fromkeys(ids))

    async def get(self, ids: Sequence[str], *, vectors: bool = False) -> list[Row]:
        """The stored rows among ``ids``, in that order."""
        held = self._table.rows
        found = [held[i] for i in dict.fromkeys(ids) if i in held]
        return found if vectors else [bare(row) for row in found]

    async def partition(self, key: str) -> Partition:
        """All rows whose ``user_id`` equals ``key``."""
        table = self._table
        rows = [row for row in table.rows.values() if row.metadata.get(PARTITION_KEY) == key]
        return partition_of(key, rows, dimension=table.dimension or 0, source=table.source)

    async def size(self, key: str) -> int:
        """How many rows a partition has."""
        return sum(row.metadata.get(PARTITION_KEY) == key for row in self._table.rows.values())

    async def pages(self, *, size: int = PAGE, vectors: bool = False) -> AsyncIterator[list[Row]]:
        """All rows, page by page."""
        for ids in batches(list(self._table.rows), size):
            page = await self.get(ids, vectors=vectors)
            if page:
                yield page


def _refuse_known(table: _Table, rows: Sequence[Row]) -> None:
    for row in rows:
        if row.id in table.rows:
            raise Duplicate("这个 ID 已经存在，没有重复写入", id=row.id)


def _claim_dimension(table: _Table, rows: Sequence[Row]) -> None:
    sizes = {row.vector.size for row in rows if row.vector is not None}
    if table.dimension is not None and sizes - {table.dimension}:
        raise SpaceMismatch(f"向量维度与已存数据不一致（已存 {table.dimension} 维），请运行 ambot memory reindex")
    table.dimension = next(iter(sizes), table.dimension)


if TYPE_CHECKING:
    _store: VectorStore = MemoryStore()
    _collection: Collection = MemoryCollection(MemoryStore(), "name")
