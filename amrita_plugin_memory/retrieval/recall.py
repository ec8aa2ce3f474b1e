"""Find in one partition what answers a question: by meaning where vectors may be compared, by words always."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from amrita_plugin_memory.embedding.ports import Embedder
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable
from amrita_plugin_memory.vectordb.ports import Matrix, Partition, Row

from .rank import Floats, best, fuse, scale_for
from .words import Lexicon

Mode: TypeAlias = Literal["hybrid", "words"]

_log = logging.getLogger("amrita_memory.retrieval")
_LEXICONS: Final = 64
_AT_ONCE: Final = 64  # rows below which counting terms is not worth a thread


@dataclass(frozen=True, slots=True)
class Hit:
    """One row that answers; ``relevance`` in [0, 1] is for people, ``score`` only orders this one answer."""

    row: Row
    score: float
    relevance: float
    cosine: float | None
    coverage: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, best first. ``note`` is one sentence for the reader when meaning could not be used."""

    hits: tuple[Hit, ...]
    mode: Mode
    note: str = ""


def words_of(row: Row) -> str:
    """The text of a row that words are matched with: what it says and how it is tagged."""
    return f"{row.document or ''} {row.metadata.get('tags', '')}"


class Recall:
    """Ranks partitions for questions. Holds the term counts of recently asked partitions."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._lexicons: OrderedDict[str, tuple[Sequence[Row], Lexicon]] = OrderedDict()

    async def ask(
        self,
        question: str,
        partition: Partition,
        *,
        top_k: int,
        keep: Callable[[Row], bool] | None = None,
        words_only: str = "",
    ) -> Answer:
        """The ``top_k`` best rows of ``partition`` for ``question``, among those that ``keep`` accepts.

        When ``words_only`` is not empty, vectors are not touched and it is the note that says why.

        """
        if not partition.rows:
            return Answer((), "words", words_only)
        vector, note = (None, words_only) if words_only else await self._vector(question)
        lexicon = await self._lexicon(partition)
        coverage = lexicon.coverage(question)
        if vector is None:
            return Answer(_by_words(partition.rows, coverage, top_k=top_k, keep=keep), "words", note)
        space = await self._embedder.space()
        cosines = _cosines(partition.matrix, vector)
        model = f"{space.package} {space.resolved_model or space.model}"
        scores = fuse(cosines, coverage, scale_for(model, partition.matrix))
        rows = partition.rows
        hits = (
            Hit(rows[i], float(scores[i]), float(np.clip(scores[i], 0, 1)), float(cosines[i]), coverage[i])
            for i in _chosen(best(scores, len(rows)), rows, keep, top_k)
        )
        return Answer(tuple(hits), "hybrid")

    async def _vector(self, question: str) -> tuple[Matrix | None, str]:
        try:
            space = await self._embedder.space()
            if not space.meaningful:
                return None, ""
            return (await self._embedder.embed([question], purpose="query"))[0], ""
        except EmbeddingUnavailable as e:
            _log.warning("[Memory] 按意思检索暂不可用，改为按字词：%s", e)
            return None, f"嵌入服务暂不可用，本次只按字词匹配（{e}）"

    async def _lexicon(self, partition: Partition) -> Lexicon:
        held = self._lexicons.get(partition.key)
        if held is not None and held[0] is partition.rows:
            self._lexicons.move_to_end(partition.key)
            return held[1]
        texts = [words_of(row) for row in partition.rows]
        few = len(texts) <= _AT_ONCE
        lexicon = Lexicon.of(texts) if few else await asyncio.to_thread(Lexicon.of, texts)
        self._lexicons[partition.key] = (partition.rows, lexicon)
        while len(self._lexicons) > _LEXICONS:
            self._lexicons.popitem(last=False)
        return lexicon


def _cosines(matrix: Matrix, vector: Matrix) -> Floats:
    # Rows of the published plugin need not be unit vectors.
    norms = np.linalg.norm(matrix, axis=1)
    return ((matrix @ vector) / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def _chosen(order: Sequence[int], rows: Sequence[Row], keep: Callable[[Row], bool] | None, top_k: int) -> list[int]:
    return [i for i in order if keep is None or keep(rows[i])][:top_k]


def _by_words(
    rows: Sequence[Row], coverage: Sequence[float], *, top_k: int, keep: Callable[[Row], bool] | None
) -> tuple[Hit, ...]:
    order = [i for i in best(np.asarray(coverage, dtype=np.float32), len(rows)) if coverage[i] > 0]
    found = _chosen(order, rows, keep, top_k)
    return tuple(Hit(rows[i], coverage[i], min(coverage[i] * 1.25, 1.0), None, coverage[i]) for i in found)
