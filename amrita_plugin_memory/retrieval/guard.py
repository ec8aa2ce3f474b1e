"""Rule 4: vectors of two spaces are never compared or mixed. Asks the collection what it was built with, each time.

Names are compared at every call; the vector of a fixed sentence is compared once in a while, so that a model that was
swapped behind its name is noticed too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import numpy as np

from amrita_plugin_memory.embedding.ports import Embedder, Matrix
from amrita_plugin_memory.kernel.clock import Clock, SystemClock
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable, SpaceMismatch
from amrita_plugin_memory.vectordb.ports import VECTORS_MISSING, Collection, Partition, Row, Scalar

from .fingerprint import (
    DIMENSION,
    DOUBTED,
    IDENTICAL,
    PROBE,
    PROBE_TEXT,
    REBUILDING,
    SAME_MODEL,
    identity,
    likeness,
    match,
    recorded_probe,
    stamp,
)

Verdict: TypeAlias = Literal["empty", "unmarked", "same", "different", "swapped"]

MISMATCH: Final = (
    "记忆库是用另一个嵌入模型建立的，在重建之前只按字词检索、不写入新记忆，请由主人运行 ambot memory reindex"
)
SWAPPED: Final = (
    "嵌入服务上的模型被换过（名字没变，向量变了），在重建之前只按字词检索、不写入新记忆，"
    "请换回原来的模型，或由主人运行 ambot memory reindex"
)
PASSAGE_SECONDS: Final = 10.0  # somebody in a chat waits for the answer
RECHECK: Final = 600.0  # seconds a compared probe counts
_KEPT: Final = 8
_READS: Final = 3


class SpaceGuard:
    """Stands between an embedder and its collections."""

    def __init__(self, embedder: Embedder, *, clock: Clock | None = None) -> None:
        self._embedder = embedder
        self._clock = clock or SystemClock()
        self._claiming = asyncio.Lock()
        self._likeness: dict[str, tuple[float, float]] = {}  # stored probe → cosine with ours, and when it was seen

    async def verdict(self, collection: Collection) -> Verdict:
        """How the collection and the embedder stand to each other.

        ``empty`` has no rows that were made by another model; ``unmarked`` has rows and says nothing of their space;
        ``swapped`` names the same model, and its vectors are not those of that model any more.

        Raises:
            EmbeddingUnavailable: the embedder cannot say.

        """
        metadata = await collection.metadata()
        if metadata.get(DOUBTED):
            return "swapped"
        named = match(metadata, await self._embedder.space())
        if named == "unmarked":
            return "unmarked" if await collection.count() else "empty"
        alike = await self._alike(metadata)
        if named == "same":
            return "swapped" if alike is not None and alike < SAME_MODEL else "same"
        if alike is not None and alike >= IDENTICAL:
            return "same"  # the same model under another name or at another address
        return "different" if await collection.count() else "empty"

    async def objection(self, collection: Collection) -> str:
        """Why vectors of this collection must not be compared now, as one sentence; "" when they may.

        An embedding service that does not answer is no objection here: asking it for the query's vector will say so.
        """
        try:
            return _objections(await self.verdict(collection))
        except EmbeddingUnavailable:
            return ""

    async def partition(self, collection: Collection, key: str) -> tuple[Partition, str]:
        """A partition and the objection to comparing the vectors in it.

        The two belong together even when the collection is rebuilt and swapped in between: a partition whose source
        is not the same before and after the question was asked is read again.
        """
        partition = await collection.partition(key)
        for _ in range(_READS):
            objection = await self.objection(collection)
            again = await collection.partition(key)
            if again.source == partition.source:
                return again, objection
            partition = again
        return partition, MISMATCH

    async def claim(self, collection: Collection) -> None:
        """Make sure that this embedder may write into the collection; an empty one is stamped with its space.

        Raises:
            SpaceMismatch: the collection was built with another model.
            EmbeddingUnavailable: the embedder cannot say what its space is.

        """
        async with self._claiming:
            verdict = await self.verdict(collection)
            if verdict == "same":
                return
            if verdict != "empty":
                raise SpaceMismatch(_objections(verdict))
            await self.mark(collection)

    async def passage(self, collection: Collection, text: str) -> Matrix:
        """The vector to store ``text`` with, shape (dimension,).

        While the collection is being rebuilt for this embedder it is zeros of the old dimension: nothing can be
        compared with those, words find the row meanwhile, and the rebuild embeds it.

        Raises:
            SpaceMismatch: the collection was built with another model and nobody is rebuilding it.
            EmbeddingUnavailable: no vector could be had.

        """
        try:
            await self.claim(collection)
        except SpaceMismatch:
            metadata = await collection.metadata()
            size = int(metadata.get(DIMENSION, 0))
            if not size or metadata.get(REBUILDING) != identity(await self._embedder.space()):
                raise
            await collection.annotate({VECTORS_MISSING: True})
            return np.zeros(size, dtype=np.float32)
        return (await self._embedder.embed([text], purpose="passage", deadline=PASSAGE_SECONDS))[0]

    async def keep(self, collection: Collection, row: Row, *, put: Callable[[Sequence[Row]], Awaitable[None]]) -> None:
        """Store a row, by ``add`` or ``update``, whose vector ``passage`` gave.

        A write that waited for a rebuild to be swapped in carries zeros of the old dimension, and nobody would embed
        it any more: then it is embedded and stored anew.

        Raises:
            SpaceMismatch, EmbeddingUnavailable: as ``passage``.

        """
        waiting = row.vector is not None and not row.vector.any()
        try:
            await put([row])
        except SpaceMismatch:
            if not waiting:
                raise
        else:
            if not waiting or (await collection.metadata()).get(REBUILDING):
                return
            put = collection.update
        await put([replace(row, vector=await self.passage(collection, row.document or ""))])

    async def mark(self, collection: Collection) -> None:
        """Record this embedder's space and probe with the collection, whatever it was; reads no rows.

        Raises:
            EmbeddingUnavailable: the embedder cannot say what its space is.

        """
        await collection.annotate({**await self.marks(), DOUBTED: None})

    async def marks(self) -> dict[str, Scalar]:
        """The metadata that records this embedder's space, probe included."""
        return stamp(await self._embedder.space(), await self._probe())

    async def adopt(self, collection: Collection) -> bool:
        """Add our marks to a collection of the published plugin, whose vectors must be this embedder's.

        Told by embedding a few stored documents again. True when the collection carries our marks now; False when
        nothing in it can be told by, or when its vectors are another model's, which is then recorded as well.

        Raises:
            EmbeddingUnavailable: the embedder does not answer.

        """
        if (await collection.metadata()).get(PROBE):
            return True
        sample = await _sample(collection)
        if not sample:
            return False
        again = await self._embedder.embed([row.document or "" for row in sample], purpose="passage")
        cosines = [likeness(row.vector, new) for row, new in zip(sample, again, strict=True) if row.vector is not None]
        if min(cosines, default=-1.0) < SAME_MODEL:
            await collection.annotate({DOUBTED: True})
            return False
        await self.mark(collection)
        return True

    async def _alike(self, metadata: Mapping[str, Scalar]) -> float | None:
        """Cosine of the collection's probe and ours; None when it has none."""
        stored = recorded_probe(metadata)
        if stored is None or (await self._embedder.space()).dimension not in (None, stored.size):
            return None
        key = str(metadata[PROBE])
        known = self._likeness.get(key)
        if known is not None and self._clock.monotonic() - known[1] < RECHECK:
            return known[0]
        cosine = likeness(stored, await self._probe())
        while len(self._likeness) >= _KEPT:
            self._likeness.pop(next(iter(self._likeness)))
        self._likeness[key] = (cosine, self._clock.monotonic())
        return cosine

    async def _probe(self) -> Matrix:
        return (await self._embedder.embed([PROBE_TEXT], purpose="passage"))[0]


async def _sample(collection: Collection, size: int = 6) -> list[Row]:
    """Some rows with short documents and real vectors, from the beginning and the end of the collection."""
    ids: list[str] = []
    async for page in collection.pages():
        ids += [row.id for row in page if row.document and row.document.strip() and len(row.document) <= 500]
        ids = ids if len(ids) <= size else ids[: size // 2] + ids[-(size // 2) :]
    rows = await collection.get(ids, vectors=True)
    return [row for row in rows if row.vector is not None and bool(row.vector.any())]


def _objections(verdict: Verdict) -> str:
    return {"different": MISMATCH, "unmarked": MISMATCH, "swapped": SWAPPED}.get(verdict, "")
