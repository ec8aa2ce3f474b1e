"""Build a collection anew beside the old one, and put it in its place when it is complete.

The new collection is its own checkpoint: every pass makes it equal to the source, row by row, and only what differs
costs an embedding. So a rebuild resumes after a kill at any point, and what was written or deleted meanwhile comes in.
The order of states, each safe to be killed in (see ``recover``):

    old alone → old + part of the new → old + new marked complete → (swap) new + old aside → new alone
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from amrita_plugin_memory.embedding.ports import Embedder
from amrita_plugin_memory.kernel.clock import Clock, SystemClock
from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.retrieval import GatedStore, SpaceGuard
from amrita_plugin_memory.retrieval.fingerprint import DIMENSION, REBUILDING, identity, match
from amrita_plugin_memory.vectordb.ports import Collection, Row, Scalar

from .names import (
    BUILDING,
    COMPLETE,
    GENERATION,
    JOB,
    PENDING,
    STATE,
    aside_of,
    generation,
    kept,
    rebuild_of,
)
from .progress import Meter, Report, silent
from .sources import Itself, Source, TextOf, document_of
from .vectors import Sleep, Vectors

PAGE: Final = 500
_PASSES: Final = 5
_log = logging.getLogger("amrita_memory.ops")


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did.

    ``embedded`` rows got a vector now, ``resumed`` rows had been done by an earlier run, and for the rows ``without``
    no vector could be had, so that only words find them. ``seconds`` is how long it took.
    """

    rows: int
    embedded: int
    resumed: int
    without: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """How a long job goes: texts an embedding call, whom to tell, and by which clock."""

    batch: int = 64
    report: Report = silent
    clock: Clock = field(default_factory=SystemClock)
    sleep: Sleep = asyncio.sleep


class Rebuild:
    """One rebuild of the collection ``name``. Use ``run`` once.

    ``shared``: other programs may write to the same store, unseen by the gate; what they changed is looked for.
    """

    def __init__(
        self,
        store: GatedStore,
        name: str,
        *,
        embedder: Embedder,
        pace: Pace,
        source: Source | None = None,
        text_of: TextOf = document_of,
        shared: bool = False,
    ) -> None:
        self._store = store
        self._shared = shared
        self._name = name
        self._guard = SpaceGuard(embedder)
        self._embedder = embedder
        self._vectors = Vectors(embedder, batch=pace.batch, sleep=pace.sleep)
        self._given = source
        self._text_of = text_of
        self._pace = pace
        self._embedded = self._resumed = self._without = 0
        self._doubted = False  # what an earlier run built has lost vectors: look at each before it counts as done

    async def run(self) -> Rebuilt:
        """Build, swap, and remove the old.

        Raises:
            EmbeddingUnavailable: the service stayed down; what is built stays, the next run goes on from there.
            Locked: the same collection is being rebuilt already.
            StoreUnavailable: the store does not answer; nothing is lost.

        """
        begun = self._pace.clock.monotonic()
        await self._vectors.open()
        main = await self._open(self._name)
        source = self._given or Itself(main)
        with self._store.listen(self._name) as touched:
            target = await self._target(main, source)
            rows = await self._fill(source, target)
            await self._settle(source, target, touched)
            await self._replace(source, main, target, touched)
        await self._store.drop(aside_of(self._name))
        seconds = self._pace.clock.monotonic() - begun
        return Rebuilt(rows, self._embedded, self._resumed, self._without, seconds)

    async def _open(self, name: str) -> Collection:
        collection = await self._store.open(name)
        if collection is None:
            raise StoreUnavailable("记忆库是以只读方式打开的，不能重建，请先停止机器人再试")
        return collection

    async def _target(self, main: Collection, source: Source) -> Collection:
        """The collection to build: the one an earlier run of the same work left, or a new one."""
        name = rebuild_of(self._name)
        target = await self._open(name)
        if await target.count() and not await self._resumable(target, source):
            await self._store.drop(name)
            target = await self._open(name)
        self._doubted = bool((await target.metadata()).get(PENDING))
        await target.annotate({**await self._guard.marks(), STATE: BUILDING, JOB: source.job})
        await announce(main, self._embedder)
        return target

    async def _resumable(self, target: Collection, source: Source) -> bool:
        metadata = await target.metadata()
        ours = metadata.get(STATE) in (BUILDING, COMPLETE) and metadata.get(JOB) == source.job
        return (
            ours
            and match(metadata, await self._embedder.space()) == "same"
            and await self._guard.verdict(target) == "same"
        )

    async def _fill(self, source: Source, target: Collection) -> int:
        meter = Meter("embed", await source.count(), self._pace.clock, self._pace.report)
        meter.start()
        async for page in source.pages(PAGE):
            meter.step(len(page), worked=await self._sync(page, target))
        return meter.done

    async def _settle(self, source: Source, target: Collection, touched: set[str]) -> None:
        """Bring in what changed during the long pass, while others go on writing."""
        if self._shared:
            await self._compare(source, target)
        else:
            await self._drop_gone(source, target)
        for _ in range(_PASSES):
            if not touched:
                return
            await self._catch_up(source, target, touched)

    async def _compare(self, source: Source, target: Collection) -> None:
        """Bring in what programs changed that nobody heard of: row by row, only what differs costs an embedding."""
        resumed = self._resumed
        async for page in source.pages(PAGE):
            await self._sync(page, target)
        self._resumed = resumed
        await self._drop_gone(source, target)

    async def _drop_gone(self, source: Source, target: Collection) -> None:
        async for page in target.pages():
            await self._remove(source, target, [row.id for row in page])

    async def _replace(self, source: Source, main: Collection, target: Collection, touched: set[str]) -> None:
        """The moment of the swap: no write to the old collection in here, and none is missed."""
        async with self._store.hold(self._name):
            await self._catch_up(source, target, touched)
            if self._shared:
                await self._compare(source, target)
            if self._given is None and await main.count() != await target.count():
                raise StoreUnavailable(
                    "重建期间有别的程序在写同一个记忆库，没有替换，请停止其他机器人后再运行 ambot memory reindex"
                )
            await target.annotate(await self._final(main))
            await self._store.drop(aside_of(self._name))
            await self._store.swap(self._name, rebuild_of(self._name), aside=aside_of(self._name))
            await main.annotate({STATE: None, JOB: None})

    async def _final(self, main: Collection) -> dict[str, Scalar]:
        old = await main.metadata()
        return {**kept(old), STATE: COMPLETE, GENERATION: generation(old) + 1}

    async def _catch_up(self, source: Source, target: Collection, touched: set[str]) -> None:
        ids = list(touched)
        touched.difference_update(ids)
        for start in range(0, len(ids), PAGE):
            part = ids[start : start + PAGE]
            rows = await source.get(part)
            if self._given is not None:  # rows of a backup are named without contents, and never change
                rows = [row for row in rows if row.metadata]
            await self._sync(rows, target, anew=self._given is None)
            await self._remove(source, target, part)

    async def _remove(self, source: Source, target: Collection, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), PAGE):
            part = ids[start : start + PAGE]
            there = {row.id for row in await source.get(part)}
            gone = [i for i in part if i not in there]
            if gone:
                await target.delete(gone)

    async def _sync(self, rows: Sequence[Row], target: Collection, *, anew: bool = False) -> int:
        """Make these rows of the target equal to the source's; how many of them cost an embedding.

        ``anew`` also embeds rows that look equal: the text of a knowledge entry's vector is not in its row.
        """
        stored = await target.get([row.id for row in rows], vectors=self._doubted)
        have = {row.id: row for row in stored}
        lost = {row.id for row in stored if row.vector is not None and not row.vector.any()}
        changed = [row for row in rows if anew or row.id in lost or not _equal(have.get(row.id), row)]
        self._resumed += len(rows) - len(changed)
        ready = [row for row in changed if row.vector is not None]
        bare = [row for row in changed if row.vector is None]
        vectors = await self._vectors.of([self._text_of(row) for row in bare])
        without = sum(vector is None for vector in vectors)
        if without:
            await target.annotate({PENDING: True})
        zeros = self._vectors.zeros()
        ready += (
            Row(row.id, row.document, row.metadata, zeros if vector is None else vector)
            for row, vector in zip(bare, vectors, strict=True)
        )
        await _put(_in_order_of(rows, ready), have, target)
        self._embedded += len(bare) - without
        self._without += without
        return len(bare)


async def announce(main: Collection, embedder: Embedder) -> None:
    """Let writers know that they may store rows without a vector of the old space.

    Those carry zeros. Should the old model come back before the rebuild is done, the mark says that they are to be
    embedded.
    """
    async for page in main.pages(size=1, vectors=True):
        vector = page[0].vector
        if vector is not None:
            space = await embedder.space()
            await main.annotate({REBUILDING: identity(space), DIMENSION: int(vector.size), PENDING: True})
        return


def _in_order_of(rows: Iterable[Row], ready: Iterable[Row]) -> list[Row]:
    by_id = {row.id: row for row in ready}
    return [by_id[row.id] for row in rows if row.id in by_id]


async def _put(rows: Sequence[Row], have: dict[str, Row], target: Collection) -> None:
    new = [row for row in rows if row.id not in have]
    old = [row for row in rows if row.id in have]
    if new:
        await target.add(new)
    if old:
        await target.update(old)


def _equal(one: Row | None, other: Row) -> bool:
    return one is not None and one.document == other.document and dict(one.metadata) == dict(other.metadata)
