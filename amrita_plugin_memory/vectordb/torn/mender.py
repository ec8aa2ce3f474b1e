"""Gets a local collection going again whose vector index is torn, and gives rows that lost their vectors zeros."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amrita_plugin_memory.vectordb import fetch
from amrita_plugin_memory.vectordb.directory import COMMITS_OF_A_WRITE
from amrita_plugin_memory.vectordb.ports import VECTORS_MISSING, Collection
from amrita_plugin_memory.vectordb.rows import batches

from .files import index_of, put_aside

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection as ChromaHandle

    from amrita_plugin_memory.vectordb.connection import Connection
    from amrita_plugin_memory.vectordb.link import Link

_BATCH: Final = 250  # rows that one call looks at: each of them is a request when its vector is gone
_LOST: Final = "Error finding id"
_log = logging.getLogger("amrita_memory.vectordb")


class Mender:
    """For one local directory that this process alone writes to."""

    def __init__(self, link: Link, directory: Path) -> None:
        self._link = link
        self._directory = directory
        self._tried: set[str] = set()

    async def put_aside(self, collection: Collection) -> bool:
        """Begin the index of the collection anew; False when that was done before, so that it is no cure."""
        if collection.name in self._tried:
            return False
        self._tried.add(collection.name)
        await self._link.alone(partial(_put_aside, self._directory, collection.name))
        await self.fill(collection)
        return True

    async def fill(self, collection: Collection) -> int:
        """Give rows without a vector zeros, so that Chroma reads them again; how many.

        The collection is marked first: a kill in between leaves rows that the next reader of vectors comes upon.
        """
        ids = await self._link.read(lambda c: fetch.all_ids(c.collection(collection.name)))
        filled = 0
        for batch in batches(ids, _BATCH):
            if not filled and await self._link.read(lambda c, batch=batch: _first_lost(c, collection.name, batch)):
                await collection.annotate({VECTORS_MISSING: True})
            filled += await self._link.write(lambda c, batch=batch: _fill(c, collection.name, batch))
        if filled:
            self._link.era += 1
            _log.warning(
                "[Memory] %s 的向量索引在上次中断时写坏了：文字都在，%d 条暂时只按字词检索，启动检查会重新计算向量",
                collection.name,
                filled,
            )
        return filled


def _put_aside(directory: Path, collection: str) -> None:
    put_aside(directory, index_of(directory, collection))


def _first_lost(connection: Connection, name: str, ids: Sequence[str]) -> bool:
    return _is_lost(connection.collection(name), ids)


def _fill(connection: Connection, name: str, ids: Sequence[str]) -> int:
    handle = connection.collection(name)
    lost = [one for one in ids if _is_lost(handle, [one])] if _is_lost(handle, ids) else []
    size = connection.dimension(name)
    if lost and size:
        connection.commits += COMMITS_OF_A_WRITE
        # An update of a row that the index does not know is dropped in silence; an upsert is not.
        handle.upsert(ids=lost, embeddings=[[0.0] * size for _ in lost])
    return len(lost)


def _is_lost(handle: ChromaHandle, ids: Sequence[str]) -> bool:
    from chromadb.errors import InternalError

    try:
        handle.get(ids=list(ids), include=["embeddings"])
    except InternalError as error:
        if _LOST in str(error):
            return True
        raise
    return False
