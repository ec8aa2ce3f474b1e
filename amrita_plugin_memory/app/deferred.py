"""An embedder that is chosen when first needed: what the collection was built with decides, so the store is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from amrita_plugin_memory.embedding.ports import Embedder, Matrix, Purpose, VectorSpace


class DeferredEmbedder:
    """Builds the real embedder once; a failure to build is raised to the caller and tried again at the next call."""

    def __init__(self, build: Callable[[], Awaitable[Embedder]]) -> None:
        self._build = build
        self._building = asyncio.Lock()
        self._embedder: Embedder | None = None

    async def embed(self, texts: Sequence[str], *, purpose: Purpose, deadline: float | None = None) -> Matrix:
        """See Embedder."""
        return await (await self._ready()).embed(texts, purpose=purpose, deadline=deadline)

    async def space(self) -> VectorSpace:
        """See Embedder."""
        return await (await self._ready()).space()

    async def aclose(self) -> None:
        """Close the real embedder, if one was ever built."""
        if self._embedder is not None:
            await self._embedder.aclose()

    async def _ready(self) -> Embedder:
        if self._embedder is None:
            async with self._building:
                if self._embedder is None:
                    self._embedder = await self._build()
        return self._embedder
