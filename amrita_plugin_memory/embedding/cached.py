"""Query vectors kept for a while: one question is often asked twice in a turn, and also during an outage."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np

from .ports import Embedder, Matrix, Purpose, VectorSpace

CAPACITY: Final = 256


class QueryCache:
    """Wraps an embedder; the least recently used of ``capacity`` query vectors goes first. Passages pass through."""

    def __init__(self, inner: Embedder, *, capacity: int = CAPACITY) -> None:
        self._inner = inner
        self._capacity = capacity
        self._vectors: OrderedDict[str, Matrix] = OrderedDict()

    async def embed(self, texts: Sequence[str], *, purpose: Purpose, deadline: float | None = None) -> Matrix:
        """See the port; a single query that is known costs no call."""
        if purpose != "query" or len(texts) != 1 or isinstance(texts, str):
            return await self._inner.embed(texts, purpose=purpose, deadline=deadline)
        key = texts[0]
        known = self._vectors.get(key)
        if known is None:
            known = (await self._inner.embed(texts, purpose=purpose, deadline=deadline))[0]
        self._keep(key, known)
        return known[np.newaxis].copy()

    def _keep(self, key: str, vector: Matrix) -> None:
        self._vectors[key] = vector
        self._vectors.move_to_end(key)
        while len(self._vectors) > self._capacity:
            self._vectors.popitem(last=False)

    async def space(self) -> VectorSpace:
        """The inner embedder's space."""
        return await self._inner.space()

    async def aclose(self) -> None:
        """Close the inner embedder and forget."""
        self._vectors.clear()
        await self._inner.aclose()
