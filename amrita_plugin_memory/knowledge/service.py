"""Create, read, search, change and delete knowledge entries; keep files and vectors in step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import numpy as np

from amrita_plugin_memory.embedding.ports import Embedder
from amrita_plugin_memory.kernel.clock import Clock, local_zone
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, InvalidInput, NotFound, SpaceMismatch, Unavailable
from amrita_plugin_memory.kernel.text import is_blank
from amrita_plugin_memory.retrieval import Answer, Recall, SpaceGuard
from amrita_plugin_memory.vectordb.ports import PARTITION_KEY, Collection, Matrix, Partition, Row, Scalar, VectorStore

from .entry import Entry, checked, from_text, to_text
from .ports import EntryFiles

_log = logging.getLogger("amrita_memory.knowledge")
PARTITION: Final = "knowledge"
_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did: vectors made, vectors removed, entries that still lack one."""

    embedded: int = 0
    removed: int = 0
    missing: int = 0


class Knowledge:
    """The shared knowledge base. Files are the truth; vectors follow and are repaired."""

    def __init__(
        self,
        *,
        files: EntryFiles,
        store: VectorStore,
        embedder: Embedder,
        recall: Recall,
        clock: Clock,
        collection: str,
        max_chars: Callable[[], int],
    ) -> None:
        self._files = files
        self._store = store
        self._embedder = embedder
        self._recall = recall
        self._clock = clock
        self._name = collection
        self._max_chars = max_chars
        self._guard = SpaceGuard(embedder)
        self._writing = asyncio.Lock()

    @property
    def max_chars(self) -> int:
        """The bound of a body in characters."""
        return self._max_chars()

    async def list(self) -> list[Entry]:
        """All entries, by id."""
        return [entry for kid in await self._files.names() if (entry := await self._entry(kid)) is not None]

    async def read(self, kid: str) -> Entry:
        """One entry.

        Raises:
            NotFound: there is none of this id.

        """
        entry = await self._entry(kid)
        if entry is None:
            raise NotFound(f"没有编号为 {kid[:20]} 的知识条目")
        return entry

    async def create(self, title: str, summary: str, body: str) -> Entry:
        """Store a new entry. An embedding service that is down delays its vector, not the entry.

        Raises:
            InvalidInput: a part is blank or too long, or an entry of the same title is there already.

        """
        name, about, text = checked(title, summary, body, max_body=self._max_chars())
        async with self._writing:
            for other in await self.list():
                if other.title.casefold() == name.casefold():
                    raise InvalidInput(f"已有同名知识条目 {other.kid}，请用更新而不是新建")
            entry = Entry(await self._new_kid(), name, about, text)
            await self._write(entry)
            return entry

    async def update(
        self, kid: str, *, title: str | None = None, summary: str | None = None, body: str | None = None
    ) -> tuple[Entry, Entry]:
        """Change what is given; the entry before and after.

        Raises:
            NotFound: there is none of this id.
            InvalidInput: nothing is given, or a part is blank or too long.

        """
        if title is None and summary is None and body is None:
            raise InvalidInput("请至少给出标题、摘要、正文之一")
        async with self._writing:
            old = await self.read(kid)
            parts = checked(
                old.title if title is None else title,
                old.summary if summary is None else summary,
                old.body if body is None else body,
                max_body=self._max_chars(),
            )
            new = Entry(kid, *parts)
            await self._write(new)
            return old, new

    async def delete(self, kid: str) -> Entry:
        """Remove an entry and return what it was.

        Raises:
            NotFound: there is none of this id.

        """
        async with self._writing:
            old = await self.read(kid)
            await self._files.delete(kid)
            await self._quietly(self._drop_vector(kid))
            return old

    async def put_back(self, entry: Entry) -> None:
        """Store an entry under its own id, as it was: the undo of a change or a deletion."""
        async with self._writing:
            await self._write(entry)

    async def search(self, question: str, top_k: int = 5) -> list[tuple[Entry, float]]:
        """Entries that answer best, with their relevance in [0, 1]; by words alone when meaning cannot be used.

        Raises:
            InvalidInput: a blank question or ``top_k`` below 1.

        """
        if is_blank(question) or top_k < 1:
            raise InvalidInput("请写明要在知识库里找什么")
        entries = {entry.kid: entry for entry in await self.list()}
        answer = await self._ask(question, list(entries.values()), min(top_k, 20))
        return [(entries[hit.row.id], hit.relevance) for hit in answer.hits]

    async def repair(self) -> Repaired:
        """Bring the vectors in step with the files: embed what lacks one or has changed, remove what has no file."""
        entries = {entry.kid: entry for entry in await self.list()}
        collection = await self._collection()
        rows = await self._rows(collection)
        orphans = [kid for kid in rows if kid not in entries]
        await collection.delete(orphans)
        stale = [one for kid, one in entries.items() if kid not in rows or rows[kid].document != _words(one)]
        done = 0
        for start in range(0, len(stale), _AT_ONCE):
            batch = stale[start : start + _AT_ONCE]
            if not await self._quietly(self._embed(batch)):
                break
            done += len(batch)
        return Repaired(done, len(orphans), len(stale) - done)

    async def _ask(self, question: str, entries: Sequence[Entry], top_k: int) -> Answer:
        try:
            collection = await self._collection()
            objection = await self._guard.objection(collection)
            rows = {} if objection else await self._rows(collection, vectors=True)
        except Unavailable as e:
            objection, rows = str(e), {}
        now = self._clock.now().astimezone(local_zone())
        return await self._recall.ask(question, _partition(entries, rows), top_k=top_k, words_only=objection, now=now)

    async def _entry(self, kid: str) -> Entry | None:
        text = await self._files.read(kid)
        return None if text is None else from_text(kid, text)

    async def _new_kid(self) -> str:
        taken = set(await self._files.names())
        return next(kid for kid in iter(lambda: uuid4().hex[:8], "") if kid not in taken)

    async def _write(self, entry: Entry) -> None:
        await self._files.write(entry.kid, to_text(entry))
        await self._quietly(self._embed([entry]))

    async def _embed(self, entries: Sequence[Entry]) -> None:
        collection = await self._collection()
        await self._guard.claim(collection)
        vectors = await self._embedder.embed([f"{one.title}\n{one.summary}" for one in entries], purpose="passage")
        known = {row.id for row in await collection.get([one.kid for one in entries])}
        rows = [_row(one, vector, self._clock) for one, vector in zip(entries, vectors, strict=True)]
        await collection.update([row for row in rows if row.id in known])
        await collection.add([row for row in rows if row.id not in known])

    async def _drop_vector(self, kid: str) -> None:
        await (await self._collection()).delete([kid])

    async def _quietly(self, work: Awaitable[None]) -> bool:
        """Await the vector side of a change: the file is the truth, and a vector that lacks is repaired later."""
        try:
            await work
        except (Unavailable, SpaceMismatch) as e:
            _log.warning("[Memory] 知识条目的向量稍后补上：%s", e)
            return False
        except AmritaMemoryError:
            _log.exception("[Memory] 知识条目的向量未能更新")
            return False
        return True

    async def _rows(self, collection: Collection, *, vectors: bool = False) -> dict[str, Row]:
        return {row.id: row async for page in collection.pages(vectors=vectors) for row in page}

    async def _collection(self) -> Collection:
        collection = await self._store.open(self._name)
        assert collection is not None, "open() with create=True gives a collection"
        return collection


def _words(entry: Entry) -> str:
    return f"{entry.title}\n{entry.summary}\n{entry.body}"


def _row(entry: Entry, vector: Matrix, clock: Clock) -> Row:
    metadata = {"kid": entry.kid, PARTITION_KEY: PARTITION, "updated_at": clock.now().isoformat()}
    return Row(entry.kid, _words(entry), metadata, vector)


def _partition(entries: Sequence[Entry], rows: dict[str, Row]) -> Partition:
    """All entries as one partition; one whose vector lacks gets zeros, which resemble nothing."""
    vectors = [rows[one.kid].vector if one.kid in rows else None for one in entries]
    width = next((len(v) for v in vectors if v is not None), 1)
    matrix = np.zeros((len(entries), width), dtype=np.float32)
    for i, vector in enumerate(vectors):
        if vector is not None:
            matrix[i] = vector
    return Partition(
        PARTITION, tuple(Row(one.kid, _words(one), _told(one, rows.get(one.kid))) for one in entries), matrix
    )


def _told(entry: Entry, row: Row | None) -> dict[str, Scalar]:
    """What ranking looks at beside the words: when the entry was last written, as far as its row says."""
    when = row.metadata.get("updated_at") if row is not None else None
    return {"kid": entry.kid, **({"updated_at": when} if when else {})}
