"""Rule 4: vectors of two spaces are never compared or mixed. Asks the collection what it was built with, each time."""

from __future__ import annotations

import asyncio

from amrita_plugin_memory.embedding.ports import Embedder
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable, SpaceMismatch
from amrita_plugin_memory.vectordb.ports import Collection

from .fingerprint import match, stamp

MISMATCH = "记忆库是用另一个嵌入模型建立的，在重建之前只按字词检索、不写入新记忆，请由主人运行 ambot memory reindex"


class SpaceGuard:
    """Stands between an embedder and a collection."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._claiming = asyncio.Lock()

    async def objection(self, collection: Collection) -> str:
        """Why vectors of this collection must not be compared now, as one sentence; "" when they may.

        An embedding service that does not answer is no objection here: asking it for the query's vector will say so.
        """
        metadata = await collection.metadata()
        try:
            verdict = match(metadata, await self._embedder.space())
        except EmbeddingUnavailable:
            return ""
        if verdict == "same" or (verdict == "unmarked" and await collection.count() == 0):
            return ""
        return MISMATCH

    async def claim(self, collection: Collection) -> None:
        """Make sure that this embedder may write into the collection; an empty one is stamped with its space.

        Raises:
            SpaceMismatch: the collection was built with another model.
            EmbeddingUnavailable: the embedder cannot say what its space is.

        """
        space = await self._embedder.space()
        async with self._claiming:
            verdict = match(await collection.metadata(), space)
            if verdict == "same":
                return
            if await collection.count():
                raise SpaceMismatch(MISMATCH)
            await collection.annotate(dict(stamp(space)))
