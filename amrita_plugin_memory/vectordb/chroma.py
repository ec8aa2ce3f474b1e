"""One Chroma collection behind our port: batches, pages, honest counts, and its hot partitions."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from amrita_plugin_memory.kernel.errors import Duplicate, NotFound
from amrita_plugin_memory.kernel.locks import KeyedLocks

from . import fetch
from .cache import PartitionCache
from .calls import Missing, Stale, Torn
from .connection import BATCH, Connection
from .directory import COMMITS_OF_A_WRITE
from .fetch import FETCH
from .link import Link
from .ports import PAGE, Partition, Row, Scalar
from .rows import batches, changed_metadata, check_new, in_order, partition_of, runs, stored_metadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from chromadb.api.models.Collection import Collection as ChromaHandle

    from .torn.mender import Mender

T = TypeVar("T")
logger = logging.getLogger("amrita_memory.vectordb")
_EMPTY_MARK = "amrita"  # Chroma takes no empty metadata


class ChromaCollection:
    """A collection by name; ``limit`` bounds the bytes of its hot partitions.

    ``mender`` sets a torn index right; None where this process may not or cannot.
    """

    def __init__(self, link: Link, name: str, *, limit: int, mender: Mender | None = None) -> None:
        self._link = link
        self._name = name
        self._mender = mender
        self._cache = PartitionCache(limit)
        self._era = link.era
        self._annotations: dict[str, Scalar] | None = None
        self._loading = KeyedLocks()

    @property
    def name(self) -> str:
        """Name in the store."""
        return self._name

    async def metadata(self) -> dict[str, Scalar]:
        """The collection's own metadata; asked of the store unless nobody else can have changed it."""
        self._link.check()
        epoch, era = self._trusted().epoch, self._link.era
        if self._annotations is not None and self._link.certain:
            return dict(self._annotations)
        found = await self._read(lambda c: _own_metadata(c, self._name))
        if self._unchanged_since(epoch, era):
            self._annotations = found
        return dict(found)

    async def annotate(self, changes: Mapping[str, Scalar | None]) -> None:
        """Merge into the collection's metadata; None removes a key."""

        def work(c: Connection) -> None:
            # Keys of the index must not come back: Chroma takes them for a change of the distance function.
            merged = stored_metadata({**_own_metadata(c, self._name), **changes}) or {_EMPTY_MARK: ""}
            c.modify(self._name, metadata=merged)

        await self._link.write(work)
        self._annotations = None
        self._trusted().epoch += 1

    async def count(self) -> int:
        """Rows in the whole collection."""
        return await self._read(lambda c: c.collection(self._name).count())

    async def add(self, rows: Sequence[Row]) -> None:
        """Store new rows with vectors, in the order of the calls; see the port for the errors."""
        check_new(rows, vectors_required=True)
        if len(rows) > BATCH:
            known = await self.get([row.id for row in rows])
            _refuse([row.id for row in known])
        for batch in batches(rows, BATCH):
            await self._write(lambda c, batch=batch: _add(c, self._name, batch))
            self._trusted().added(batch)

    async def update(self, rows: Sequence[Row]) -> None:
        """Change stored rows; see the port for the errors."""
        check_new(rows, vectors_required=False)
        for batch in batches(rows, BATCH):
            old, new = await self._write(lambda c, batch=batch: _update(c, self._name, batch))
            self._trusted().updated(old, new)

    async def delete(self, ids: Sequence[str]) -> int:
        """Remove rows; the number that really was there."""
        removed = 0
        for batch in batches(list(dict.fromkeys(ids)), BATCH):
            gone = await self._write(lambda c, batch=batch: _delete(c, self._name, batch))
            self._trusted().removed(gone)
            removed += len(gone)
        return removed

    async def get(self, ids: Sequence[str], *, vectors: bool = False) -> list[Row]:
        """The stored rows among ``ids``, in that order."""
        found: list[Row] = []
        for batch in batches(list(dict.fromkeys(ids)), FETCH):
            read = self._read_vectors if vectors else self._read
            found += await read(lambda c, batch=batch: fetch.by_ids(c.collection(self._name), batch, vectors=vectors))
        return in_order(found, ids)

    async def partition(self, key: str) -> Partition:
        """All rows whose ``user_id`` equals ``key``; from memory when hot and nobody else can have changed it."""
        self._link.check()
        held = self._trusted().get(key)
        if held is not None and self._link.certain:
            return held
        async with self._loading.hold(key):
            self._link.check()
            held = self._trusted().get(key)
            if held is not None and self._link.certain:
                return held
            return await self._load(key, held)

    async def size(self, key: str) -> int:
        """How many rows a partition has."""
        return len((await self.partition(key)).rows)

    async def pages(self, *, size: int = PAGE, vectors: bool = False) -> AsyncIterator[list[Row]]:
        """The rows that were stored when it began, page by page; rows deleted meanwhile are left out."""
        for ids in batches(await self._read(lambda c: fetch.all_ids(c.collection(self._name))), size):
            page = await self.get(ids, vectors=vectors)
            if page:
                yield page

    async def _load(self, key: str, held: Partition | None) -> Partition:
        epoch, era = self._cache.epoch, self._link.era
        try:
            partition = await self._read_vectors(lambda c: fetch.partition(c.collection(self._name), key, held))
        except Missing:
            raise
        except Stale:
            partition = await self._by_words_only(key)
        # A load that overlapped a change may hold the state before it: good for this answer, not for keeping.
        if self._unchanged_since(epoch, era):
            self._cache.put(partition)
        return partition

    async def _by_words_only(self, key: str) -> Partition:
        logger.warning("collection %s: vectors of a partition cannot be read, run `ambot memory reindex`", self._name)
        rows, source = await self._read(
            lambda c: (fetch.where(c.collection(self._name), key, vectors=False), str(c.collection(self._name).id))
        )
        return partition_of(key, rows, source=source)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        try:
            return await self._link.read(work)
        except Torn:
            if not await self._mended():
                raise
            return await self._link.read(work)
        except Missing:
            # Between the two renames of a swap nothing bears the name: wait for the writer and look once more.
            await self._link.settled()
            return await self._link.read(work)

    async def _read_vectors(self, work: Callable[[Connection], T]) -> T:
        """The same for vectors, some of which may have gone with a torn index."""
        try:
            return await self._read(work)
        except (Missing, Torn):
            raise
        except Stale:
            if self._mender is None or not await self._mender.fill(self):
                raise
            return await self._read(work)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        try:
            return await self._link.write(work)
        except Torn:
            if not await self._mended():
                raise
            return await self._link.write(work)

    async def _mended(self) -> bool:
        return self._mender is not None and await self._mender.put_aside(self)

    def _trusted(self) -> PartitionCache:
        if self._era != self._link.era:
            self._era = self._link.era
            self._cache.clear()
            self._annotations = None
        return self._cache

    def _unchanged_since(self, epoch: int, era: int) -> bool:
        return self._trusted().epoch == epoch and self._link.era == era


def _own_metadata(connection: Connection, name: str) -> dict[str, Scalar]:
    found = connection.fresh(name).metadata or {}
    return {
        key: value
        for key, value in found.items()
        if not key.startswith("hnsw:") and key != _EMPTY_MARK and isinstance(value, str | int | float | bool)
    }


def _refuse(known: Sequence[str]) -> None:
    if known:
        raise Duplicate("这个 ID 已经存在，没有重复写入", id=known[0])


def _add(connection: Connection, name: str, rows: Sequence[Row]) -> None:
    handle = connection.collection(name)
    _refuse(handle.get(ids=[row.id for row in rows], include=[])["ids"])
    for run in runs(rows):
        connection.commits += COMMITS_OF_A_WRITE
        handle.add(
            ids=[row.id for row in run],
            embeddings=[row.vector for row in run if row.vector is not None],
            metadatas=[stored_metadata(row.metadata) for row in run],  # pyright: ignore[reportArgumentType]
            documents=_documents(run),
        )


def _update(connection: Connection, name: str, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    handle = connection.collection(name)
    old = {row.id: row for row in fetch.by_ids(handle, [row.id for row in rows], vectors=False)}
    if len(old) < len(rows):
        raise NotFound("没有找到要修改的数据，它可能已被删除")
    for run in runs(_with_vectors(handle, old, rows)):
        connection.commits += COMMITS_OF_A_WRITE
        handle.update(
            ids=[row.id for row in run],
            embeddings=[row.vector for row in run if row.vector is not None] or None,
            metadatas=[changed_metadata(old[row.id].metadata, row.metadata) for row in run],  # pyright: ignore[reportArgumentType]
            documents=_documents(run),
        )
    return list(old.values()), [_merged(old[row.id], row) for row in rows]


def _with_vectors(handle: ChromaHandle, old: Mapping[str, Row], rows: Sequence[Row]) -> list[Row]:
    """The rows with what Chroma must be given: no document that stays, and a vector with every one that changes.

    A changed document without a vector would make Chroma embed it, and download a model for that.
    """
    slim = [replace(row, document=None) if row.document == old[row.id].document else row for row in rows]
    needed = [row.id for row in slim if row.document is not None and row.vector is None]
    stored = {row.id: row.vector for row in fetch.by_ids(handle, needed, vectors=True)}
    return [replace(row, vector=stored[row.id]) if row.id in stored else row for row in slim]


def _merged(old: Row, row: Row) -> Row:
    document = old.document if row.document is None else row.document
    return Row(row.id, document, stored_metadata(row.metadata) or {}, row.vector)


def _delete(connection: Connection, name: str, ids: Sequence[str]) -> list[Row]:
    handle = connection.collection(name)
    gone = fetch.by_ids(handle, ids, vectors=False)
    if gone:
        connection.commits += COMMITS_OF_A_WRITE
        handle.delete(ids=[row.id for row in gone])
    return gone


def _documents(run: Sequence[Row]) -> list[str] | None:
    return None if run[0].document is None else [row.document or "" for row in run]
