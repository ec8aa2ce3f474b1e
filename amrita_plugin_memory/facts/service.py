"""Remember, recall, amend, forget and list facts. Every door goes through here, so every door has the same lock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from amrita_plugin_memory.embedding.ports import Embedder
from amrita_plugin_memory.kernel.clock import Clock, local_zone
from amrita_plugin_memory.kernel.errors import Duplicate, LimitReached, NotFound
from amrita_plugin_memory.kernel.locks import KeyedLocks
from amrita_plugin_memory.kernel.scope import Caller, ScopeName
from amrita_plugin_memory.retrieval import Recall, SpaceGuard
from amrita_plugin_memory.vectordb.ports import Collection, Matrix, Partition, VectorStore

from .fact import Fact, Importance, from_row, to_row
from .rules import (
    checked_content,
    checked_importance,
    checked_question,
    checked_tags,
    checked_top_k,
    resolve,
    same_text,
    short_ids,
)

COLLECTION: Final = "amrita_user_memory"


@dataclass(frozen=True, slots=True)
class Listed:
    """A fact beside the short id that names it among its partition."""

    fact: Fact
    short: str


@dataclass(frozen=True, slots=True)
class Found(Listed):
    """A fact that answers a question; ``relevance`` is in [0, 1]."""

    relevance: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """An answer, best first. ``note`` is one sentence when only words could be used, else ""."""

    found: tuple[Found, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a partition, newest first, and how many facts it has in all."""

    facts: tuple[Listed, ...]
    total: int
    limit: int


@dataclass(frozen=True, slots=True)
class Survey:
    """A whole partition; row i of ``matrix`` belongs to fact i."""

    facts: tuple[Listed, ...]
    matrix: Matrix | None


class Facts:
    """L2 over one collection. The partition comes from the caller, never from a model's argument."""

    def __init__(
        self, *, store: VectorStore, embedder: Embedder, recall: Recall, clock: Clock, limit: Callable[[], int]
    ) -> None:
        self._store = store
        self._recall = recall
        self._clock = clock
        self._limit = limit
        self._locks = KeyedLocks()
        self._guard = SpaceGuard(embedder)

    @property
    def limit(self) -> int:
        """How many facts a partition may hold."""
        return self._limit()

    async def remember(
        self, caller: Caller, *, scope: ScopeName, content: str, tags: str = "", importance: str = "medium"
    ) -> Listed:
        """Store one fact.

        Raises:
            InvalidInput: blank or over-long content, unknown importance, group memory outside a group.
            Duplicate: the partition says the same already; ``id`` is that fact's short id.
            LimitReached: the partition is full.
            EmbeddingUnavailable, StoreUnavailable, SpaceMismatch: nothing was stored.

        """
        key = caller.partition(scope).key()
        fact = self._new(caller, key, scope, content=content, tags=tags, importance=importance)
        collection = await self._collection()
        self._admit(await collection.partition(key), fact.content)
        vector = await self._vector(collection, fact.content)
        async with self._locks.hold(key):
            self._admit(await collection.partition(key), fact.content)
            await self._guard.keep(collection, to_row(fact, vector), put=collection.add)
            return self._listed(await collection.partition(key), fact)

    async def recall(
        self, caller: Caller, *, scope: ScopeName, question: str, top_k: int = 5, importance: str | None = None
    ) -> Recalled:
        """The facts that answer ``question`` best; by words alone when meaning cannot be used.

        Raises:
            Forbidden: personal memory, asked where a group would read the answer.
            InvalidInput: blank question, unknown importance, ``top_k`` below 1, group memory outside a group.
            StoreUnavailable: the store does not answer.

        """
        key = self._readable(caller, scope)
        wanted = checked_importance(importance) if importance else None
        asked, count = checked_question(question), checked_top_k(top_k)
        collection = await self._collection()
        partition, objection = await self._guard.partition(collection, key)
        answer = await self._recall.ask(
            asked,
            partition,
            top_k=count,
            keep=(lambda row: from_row(row).importance == wanted) if wanted else None,
            words_only=objection,
            now=self._clock.now().astimezone(local_zone()),
        )
        shorts = short_ids([row.id for row in partition.rows])
        found = tuple(Found(from_row(hit.row), shorts[hit.row.id], hit.relevance) for hit in answer.hits)
        return Recalled(found, answer.note)

    async def list(self, caller: Caller, *, scope: ScopeName, limit: int = 10, offset: int = 0) -> Page:
        """Facts of a partition, newest first.

        Raises:
            Forbidden: personal memory, asked where a group would read the answer.
            InvalidInput: ``limit`` below 1, group memory outside a group.
            StoreUnavailable: the store does not answer.

        """
        key = self._readable(caller, scope)
        count, start = checked_top_k(limit), max(offset, 0)
        partition = await (await self._collection()).partition(key)
        shorts = short_ids([row.id for row in partition.rows])
        rows = partition.rows[::-1][start : start + count]
        return Page(tuple(Listed(from_row(row), shorts[row.id]) for row in rows), len(partition.rows), self.limit)

    async def amend(
        self,
        caller: Caller,
        id: str,
        *,
        scope: ScopeName,
        content: str | None = None,
        tags: str | None = None,
        importance: str | None = None,
    ) -> Listed:
        """Change what is given of one fact; edits of different fields made at the same time are all kept.

        Raises:
            Forbidden: group memory, and the caller does not manage the group.
            NotFound, Ambiguous: the id names none or several facts of this partition.
            Duplicate: another fact says the new content already.
            InvalidInput, EmbeddingUnavailable, StoreUnavailable, SpaceMismatch: nothing was changed.

        """
        key = self._manageable(caller, scope)
        text = None if content is None else checked_content(content)
        marks = None if tags is None else checked_tags(tags)
        rank = None if importance is None else checked_importance(importance)
        collection = await self._collection()
        whole = self._find(await collection.partition(key), id).id
        vector = None if text is None else await self._vector(collection, text)
        async with self._locks.hold(key):
            partition = await collection.partition(key)
            old = self._find(partition, whole)
            if text is not None:
                self._not_twice(partition, text, besides=whole)
            new = _edited(old, text, marks, rank)
            if new == old:
                return self._listed(partition, old)
            new = replace(new, updated_at=self._now())
            row = to_row(new, vector if new.content != old.content else None)
            await self._guard.keep(collection, row, put=collection.update)
            return self._listed(partition, new)

    async def forget(self, caller: Caller, id: str, *, scope: ScopeName) -> Listed:
        """Delete one fact and return what it was.

        Raises:
            Forbidden: group memory, and the caller does not manage the group.
            NotFound, Ambiguous: the id names none or several facts of this partition.
            StoreUnavailable: the store does not answer.

        """
        key = self._manageable(caller, scope)
        collection = await self._collection()
        async with self._locks.hold(key):
            partition = await collection.partition(key)
            fact = self._find(partition, id)
            if await collection.delete([fact.id]) == 0:
                raise NotFound(f"编号为 {id.strip()[:40]} 的记忆已经不在了")
            return self._listed(partition, fact)

    async def forget_all(self, caller: Caller, *, scope: ScopeName) -> int:
        """Delete every fact of a partition; how many there were.

        Raises:
            Forbidden: group memory, and the caller does not manage the group.
            StoreUnavailable: the store does not answer; what is left is found by the next call.

        """
        key = self._manageable(caller, scope)
        collection = await self._collection()
        async with self._locks.hold(key):
            return await collection.delete([row.id for row in (await collection.partition(key)).rows])

    async def survey(self, caller: Caller, *, scope: ScopeName) -> Survey:
        """Every fact of a partition in the order it was stored, with the vectors to compare them by.

        ``matrix`` is None while vectors must not be compared.
        """
        collection = await self._collection()
        partition = await collection.partition(caller.partition(scope).key())
        shorts = short_ids([row.id for row in partition.rows])
        comparable = not await self._guard.objection(collection)
        listed = tuple(Listed(from_row(row), shorts[row.id]) for row in partition.rows)
        return Survey(listed, partition.matrix if comparable else None)

    async def put_back(self, fact: Fact) -> None:
        """Store a fact exactly as it was, id and dates included: the undo of a change or a deletion. No limit counts.

        Raises:
            EmbeddingUnavailable, StoreUnavailable, SpaceMismatch: nothing was changed.

        """
        collection = await self._collection()
        vector = await self._vector(collection, fact.content)
        async with self._locks.hold(fact.partition):
            known = await collection.get([fact.id])
            await self._guard.keep(collection, to_row(fact, vector), put=collection.update if known else collection.add)

    async def _collection(self) -> Collection:
        collection = await self._store.open(COLLECTION)
        assert collection is not None, "open() with create=True gives a collection"
        return collection

    async def _vector(self, collection: Collection, content: str) -> Matrix:
        return await self._guard.passage(collection, content)

    def _new(self, caller: Caller, key: str, scope: ScopeName, *, content: str, tags: str, importance: str) -> Fact:
        return Fact(
            id=uuid4().hex,
            content=checked_content(content),
            partition=key,
            scope=scope,
            tags=checked_tags(tags),
            importance=checked_importance(importance),
            created_at=self._now(),
            author=caller.user.key(),
            door=caller.door,
            session=caller.session,
        )

    def _now(self) -> str:
        return self._clock.now().isoformat()

    def _admit(self, partition: Partition, content: str) -> None:
        self._not_twice(partition, content)
        if len(partition.rows) >= self.limit:
            raise LimitReached(f"记忆已有 {len(partition.rows)} 条，达到上限 {self.limit} 条，请先删除或合并旧的记忆")

    @staticmethod
    def _not_twice(partition: Partition, content: str, *, besides: str = "") -> None:
        wanted = same_text(content)
        for row in partition.rows:
            if row.id != besides and same_text(row.document or "") == wanted:
                short = short_ids([one.id for one in partition.rows])[row.id]
                raise Duplicate(f"这条记忆已经有了，编号 {short}，没有重复写入", id=short)

    @staticmethod
    def _readable(caller: Caller, scope: ScopeName) -> str:
        if scope == "user":
            caller.require_privacy()
        return caller.partition(scope).key()

    @staticmethod
    def _manageable(caller: Caller, scope: ScopeName) -> str:
        key = caller.partition(scope).key()
        if scope == "group":
            caller.require_group_manager()
        return key

    @staticmethod
    def _find(partition: Partition, id: str) -> Fact:
        whole = resolve(id, [row.id for row in partition.rows])
        return next(from_row(row) for row in partition.rows if row.id == whole)

    @staticmethod
    def _listed(partition: Partition, fact: Fact) -> Listed:
        ids = {row.id for row in partition.rows} | {fact.id}
        return Listed(fact, short_ids(sorted(ids))[fact.id])


def _edited(old: Fact, content: str | None, tags: str | None, importance: Importance | None) -> Fact:
    return replace(
        old,
        content=old.content if content is None else content,
        tags=old.tags if tags is None else tags,
        importance=old.importance if importance is None else importance,
    )
