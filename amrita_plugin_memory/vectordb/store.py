"""The Chroma store: collections of one directory or one server, through one client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.errors import Duplicate, InvalidInput, StoreUnavailable
from amrita_plugin_memory.settings import EnvSettings

from . import connection as chroma
from .calls import TORN, Calls
from .chroma import ChromaCollection
from .connection import Connection
from .directory import DATABASE, WriterLock, sweep
from .link import Link
from .memory import MemoryStore
from .peek import writer
from .torn.files import damaged, put_aside
from .torn.mender import Mender

if TYPE_CHECKING:
    from .ports import VectorStore

CACHE_BYTES = 64 << 20  # hot partitions of one collection


class ChromaStore:
    """Use ``open_store``. ``directory`` and ``lock`` are None for a server, ``lock`` also for a read-only opener.

    ``torn`` names the collections whose index was put aside before the client opened.
    """

    def __init__(
        self,
        link: Link,
        *,
        directory: Path | None,
        lock: WriterLock | None,
        cache_bytes: int,
        torn: Sequence[str] = (),
    ) -> None:
        self._link = link
        self._directory = directory
        self._lock = lock
        self._cache_bytes = cache_bytes
        self._mender = Mender(link, directory) if directory is not None and lock is not None else None
        self._torn = set(torn)
        self._collections: dict[str, ChromaCollection] = {}
        self._confirmed: dict[str, int] = {}  # in which era the collection was last seen to be there

    async def open(self, name: str, *, create: bool = True) -> ChromaCollection | None:
        """The collection, made when missing and ``create``; else None. One handle a name, so that caches are shared."""
        self._link.check()
        if self._confirmed.get(name) == self._link.era:
            return self._collections[name]
        found = await self._link.read(lambda c: c.find(name) is not None)
        if not found:
            if not create or not self._link.writable:
                return None
            await self._link.write(lambda c: c.create(name) and None)
        self._confirmed[name] = self._link.era
        collection = self._collections.get(name)
        if collection is None:
            collection = ChromaCollection(self._link, name, limit=self._cache_bytes, mender=self._mender)
            self._collections[name] = collection
        if name in self._torn and self._mender is not None:
            self._torn.discard(name)
            await self._mender.fill(collection)
        return collection

    async def names(self) -> list[str]:
        """Names of all collections."""
        return await self._link.read(Connection.names)

    async def drop(self, name: str) -> None:
        """Remove a collection and what it left on disk; no error when there is none."""
        await self._link.write(lambda c: c.drop(name))
        self._link.era += 1
        if self._directory is not None:
            await self._link.alone(partial(sweep, self._directory))

    async def rename(self, old: str, new: str) -> None:
        """Give a collection another name; ``new`` must be free.

        Raises:
            Duplicate: the name is taken.
            StoreUnavailable: no collection bears the old name.

        """
        await self._link.write(lambda c: _rename(c, old, new))
        self._link.era += 1

    async def swap(self, name: str, replacement: str, *, aside: str) -> None:
        """Put ``replacement`` in the place of ``name``, which is kept as ``aside``, in one write of this process."""

        def work(c: Connection) -> None:
            c.collection(replacement)
            _rename(c, name, aside)
            _rename(c, replacement, name)

        await self._link.write(work)
        self._link.era += 1

    async def aclose(self) -> None:
        """Close the client and release the directory lock."""
        await self._link.aclose()
        if self._lock is not None:
            await asyncio.to_thread(self._lock.release)


def _rename(connection: Connection, old: str, new: str) -> None:
    if connection.find(new) is not None:
        raise Duplicate(f"集合 {new} 已经存在，不能改成这个名字", id=new)
    connection.modify(old, new_name=new)


async def open_store(
    settings: EnvSettings,
    *,
    directory: Path | None = None,
    writable: bool = True,
    clock: Clock | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> VectorStore:
    """The store the settings name. Nothing is connected before the first call: a server that is down is no error here.

    ``directory`` is Chroma's own (``…/vector_db.chroma``) and needed for VECTOR_DB_TYPE=local. ``writable=False`` takes
    no lock, so that it works while a bot has the directory open; a directory that is not there yet reads as empty.

    Raises:
        Locked: another process writes to the directory.
        InvalidInput: local without a directory.

    """
    timeout = settings.vector_db_timeout
    if settings.vector_db_type == "remote":
        place = f" Chroma 服务 {settings.vector_db_server}:{settings.vector_db_port} "
        link = Link(partial(chroma.remote, settings), Calls(place, timeout=timeout, clock=clock), writable=writable)
        return ChromaStore(link, directory=None, lock=None, cache_bytes=cache_bytes)
    if directory is None:
        raise InvalidInput("本地向量库没有给出目录，请检查启动方式")
    if not writable and not await asyncio.to_thread((directory / DATABASE).is_file):
        return MemoryStore(writable=False)
    lock = WriterLock(directory) if writable else None
    torn = await asyncio.to_thread(_looked_over, directory, lock)
    link = Link(partial(chroma.local, directory), Calls("本地向量库", timeout=timeout, clock=clock), writable=writable)
    return ChromaStore(link, directory=directory, lock=lock, cache_bytes=cache_bytes, torn=torn)


def _looked_over(directory: Path, lock: WriterLock | None) -> list[str]:
    """Take the lock, if any, and keep Chroma from an index that would end the process or lock up a collection."""
    if lock is not None:
        lock.acquire()
        torn = put_aside(directory, damaged(directory))
        sweep(directory)
        return torn
    # While a bot has it open a file may be half written for a moment.
    if damaged(directory) and writer(directory) is None:
        raise StoreUnavailable(TORN)
    return []
