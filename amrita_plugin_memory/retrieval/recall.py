"""Find in one partition what answers a question: by meaning where vectors may be compared, by words always."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, TypeAlias

import numpy as np

from amrita_plugin_memory.embedding.ports import Embedder
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable
from amrita_plugin_memory.vectordb.ports import Matrix, Partition, Row

from .dates import spans
from .lean import NONE, Leaning, gain_of
from .rank import Floats, falling, fuse
from .ready import Ready
from .scale import Scale, scale_for, words_relevance
from .words import is_dense

Mode: TypeAlias = Literal["hybrid", "words"]

ALL: Final = -1.0  # a floor that nothing lies below
CERTAIN: Final = 0.75  # relevance of a row in which every asked word stands
_log = logging.getLogger("amrita_memory.retrieval")
_HELD_PARTITIONS: Final = 64
_HELD_ROWS: Final = 50_000
_AT_ONCE: Final = 64  # rows below which preparing is not worth a thread
_QUICK: Final = 1_000  # rows below which reading their days is not


@dataclass(frozen=True, slots=True)
class Hit:
    """One row that answers; ``relevance`` in [0, 1] is for people and rises with ``score``, which only orders."""

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


@dataclass(frozen=True, slots=True)
class _Scored:
    """All rows against one question; every array has shape (n,). ``cosines`` None: by words alone."""

    scores: Floats
    coverage: Floats
    cosines: Floats | None
    scale: Scale | None

    def gained(self, gain: Floats) -> Floats:
        return (self.scores + gain * (self.scale.weight if self.scale else 1.0)).astype(np.float32)

    def relevance(self, scores: Floats) -> Floats:
        return self.scale.relevance(scores) if self.scale else words_relevance(scores)


class Recall:
    """Ranks partitions for questions. Holds what it worked out about recently asked partitions.

    ``leaning`` says at each question how much being new or important is to count.
    """

    def __init__(self, embedder: Embedder, *, leaning: Callable[[], Leaning] = lambda: NONE) -> None:
        self._embedder = embedder
        self._leaning = leaning
        self._held: OrderedDict[str, Ready] = OrderedDict()

    async def ask(
        self,
        question: str,
        partition: Partition,
        *,
        top_k: int,
        keep: Callable[[Row], bool] | None = None,
        words_only: str = "",
        now: datetime | None = None,
        floor: float = 0.0,
        leaning: Leaning | None = None,
    ) -> Answer:
        """The ``top_k`` best rows of ``partition`` for ``question``, among those that ``keep`` accepts.

        When ``words_only`` is not empty, vectors are not touched and it is the note that says why. With ``now``
        (aware, in the asker's zone) date words of the question prefer rows of those days, and ``leaning`` counts (None:
        that of this object). When no row's relevance is above ``floor`` nothing is returned, since nobody has the
        answer; when the best one answers for certain, only rows above it are returned beside it. ``ALL`` keeps all. Of
        rows that say the same in nearly the same letters only the best is given.

        """
        if not partition.rows:
            return Answer((), "words", words_only)
        vector, note = (None, words_only) if words_only else await self._vector(question)
        ready = await self._ready(partition)
        if vector is not None and len(vector) != ready.dimension:
            vector = None  # vectors of two spaces; who asks has the sentence for it
        scored = await self._scored(question, ready, vector)
        final = scored.scores
        if now is not None:
            wish = self._leaning() if leaning is None else leaning
            final = scored.gained(await self._gain(question, ready, scored.scores, now=now, leaning=wish))
        hits = _hits(ready, scored, final, _Choice(top_k, keep, floor))
        return Answer(hits, "words" if vector is None else "hybrid", note)

    async def _vector(self, question: str) -> tuple[Matrix | None, str]:
        try:
            space = await self._embedder.space()
            if not space.meaningful:
                return None, ""
            return (await self._embedder.embed([question], purpose="query"))[0], ""
        except EmbeddingUnavailable as e:
            _log.warning("[Memory] 按意思检索暂不可用，改为按字词：%s", e)
            return None, f"嵌入服务暂不可用，本次只按字词匹配（{e}）"

    async def _scored(self, question: str, ready: Ready, vector: Matrix | None) -> _Scored:
        coverage = ready.lexicon.coverage(question)
        if vector is None:
            return _Scored(coverage, coverage, None, None)
        if len(ready.rows) > _AT_ONCE:
            await asyncio.to_thread(ready.prepare_meaning)
        cosines, popular, spread = ready.cosines(vector)
        space = await self._embedder.space()
        model = f"{space.package} {space.resolved_model or space.model}"
        scale = scale_for(model, spread=spread, cosines=cosines, dense_script=is_dense(question))
        return _Scored(fuse(cosines, popular, coverage, scale), coverage, cosines, scale)

    @staticmethod
    async def _gain(question: str, ready: Ready, scores: Floats, *, now: datetime, leaning: Leaning) -> Floats:
        wanted = spans(question, now)
        if not wanted and leaning == NONE:
            return np.zeros(len(scores), dtype=np.float32)
        if len(scores) <= _QUICK:
            return gain_of(ready, scores, wanted, now=now, leaning=leaning)
        return await asyncio.to_thread(gain_of, ready, scores, wanted, now=now, leaning=leaning)

    async def _ready(self, partition: Partition) -> Ready:
        held = self._held.get(partition.key)
        if held is not None and held.serves(partition):
            self._held.move_to_end(partition.key)
            return held
        few = len(partition.rows) <= _AT_ONCE
        ready = Ready(partition) if few else await asyncio.to_thread(Ready, partition)
        self._held[partition.key] = ready
        self._held.move_to_end(partition.key)
        while len(self._held) > 1 and (
            len(self._held) > _HELD_PARTITIONS or sum(len(one.rows) for one in self._held.values()) > _HELD_ROWS
        ):
            self._held.popitem(last=False)
        return ready


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which of the ranked rows become the answer."""

    top_k: int
    keep: Callable[[Row], bool] | None
    floor: float

    def of(self, ready: Ready, scored: _Scored, scores: Floats) -> list[int]:
        relevance = scored.relevance(scores)
        found: list[int] = []
        said: set[str] = set()
        for i in falling(scores, first=self.top_k):
            # By words alone a row without any asked word has nothing to show; meaning is never that sure.
            strict = scored.cosines is None or not found or relevance[found[0]] >= CERTAIN
            if len(found) == self.top_k or (strict and relevance[i] <= self.floor):
                break
            same = ready.essence(i)
            if same not in said and (self.keep is None or self.keep(ready.rows[i])):
                said.add(same)
                found.append(i)
        return found


def _hits(ready: Ready, scored: _Scored, final: Floats, choice: _Choice) -> tuple[Hit, ...]:
    best = choice.of(ready, scored, final)
    if final is not scored.scores:
        plain = replace(choice, top_k=1).of(ready, scored, scored.scores)
        if plain and plain[0] not in best:
            best[choice.top_k - 1 :] = plain  # what answers best without preferences is never hidden
    relevance, cosines = scored.relevance(final), scored.cosines
    return tuple(
        Hit(
            ready.rows[i],
            float(final[i]),
            float(relevance[i]),
            None if cosines is None else float(cosines[i]),
            float(scored.coverage[i]),
        )
        for i in best
    )
