"""No model at all: hashed character n-grams, which only satisfy the store. Never ranked by; words do the ranking."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Sequence
from typing import Final
from zlib import crc32

import numpy as np

from .ports import HASHED_NOTE as HASHED_NOTE
from .ports import Matrix, Purpose, VectorSpace
from .texts import prepare
from .vectors import unit_rows

DIMENSION: Final = 1024
MAX_CHARS: Final = 4_000


def ngram_rows(texts: Sequence[str], *, dimension: int, salt: str = "") -> Matrix:
    """Unit vectors of hashed 1- to 3-grams of the folded characters, shape ``(len(texts), dimension)``.

    The hash trick with signs (Weinberger et al. 2009), log-damped counts, deterministic on every machine.
    """
    rows = np.zeros((len(texts), dimension), dtype=np.float64)
    seed = crc32(salt.encode())
    for row, text in zip(rows, texts, strict=True):
        for gram, count in _ngrams(text).items():
            code = crc32(gram.encode(), seed)
            row[(code >> 1) % dimension] += (1.0 if code & 1 else -1.0) * (1.0 + np.log(count))
        if not row.any():
            row[seed % dimension] = 1.0
    return unit_rows(rows, count=len(texts), dimension=dimension)


def _ngrams(text: str) -> dict[str, int]:
    folded = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    counts: dict[str, int] = {}
    for size in (1, 2, 3):
        for start in range(len(folded) - size + 1):
            gram = folded[start : start + size]
            counts[gram] = counts.get(gram, 0) + 1
    return counts


class HashedEmbedder:
    """The last resort of ``auto``: always there, never meaningful."""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose, deadline: float | None = None) -> Matrix:
        """Hashed rows; the purpose changes nothing, and it takes microseconds a text."""
        return await asyncio.to_thread(ngram_rows, prepare(texts, MAX_CHARS).texts, dimension=DIMENSION)

    async def space(self) -> VectorSpace:
        """A space of its own, marked as not meaningful."""
        return VectorSpace(
            protocol="hashed",
            model=f"char-1-3-gram-{DIMENSION}",
            base_url="",
            package="",
            dimension=DIMENSION,
            meaningful=False,
        )

    async def aclose(self) -> None:
        """Nothing is held."""
