"""The embedder over a service: resolves the model, cuts batches, adapts, retries, and gives up in time."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, TypeAlias

import numpy as np

from amrita_plugin_memory.embedding.ports import EmbedderClosed, Matrix, Purpose, VectorSpace
from amrita_plugin_memory.embedding.texts import chunks, cut_note, prepare
from amrita_plugin_memory.embedding.vectors import BadVectors, unit_rows
from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable

from .breaker import Breaker
from .faults import ServiceFault
from .models import named, pick, same_model
from .quirks import Quirks, lesson, too_long
from .wire import Ask, Wire

QUERY_SECONDS: Final = 8.0
CONCURRENCY: Final = 4
ATTEMPTS: Final[dict[Purpose, int]] = {"query": 2, "passage": 4}
_PAUSES: Final = (0.3, 8.0)  # the first, and the longest, in seconds
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
_log = logging.getLogger("amrita_memory.embedding")


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to insist: tries a request, the end in the loop's time, whether to doubt a senseless answer once."""

    tries: int
    end: float
    doubtful: bool = True


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What is asked of whom. ``space`` holds the raw configured values, and where known what a collection recorded.

    ``start``: how to ask the first time. ``pinned``: the recorded model must be used;
    another one of the server is refused rather than taken.
    """

    base: str
    space: VectorSpace
    start: Quirks
    max_chars: int = 2_000
    timeout: float = 30.0
    dimensions: int = 0
    pinned: bool = False


class ServiceEmbedder:
    """See the port. One instance an endpoint: what the endpoint taught it is kept here."""

    def __init__(self, wire: Wire, spec: ServiceSpec, *, clock: Clock, sleep: Sleep = asyncio.sleep) -> None:
        self._wire = wire
        self._spec = spec
        self._sleep = sleep
        self._breaker = Breaker(clock)
        self._quirks = spec.start
        self._model = "" if spec.space.model == "auto" else spec.space.model
        self._dimension: int | None = None
        self._answered = False
        self._closed = False
        self._resolving = asyncio.Lock()
        self._lines = asyncio.Semaphore(CONCURRENCY)

    @property
    def quirks(self) -> Quirks:
        """What the endpoint taught so far."""
        return self._quirks

    async def embed(self, texts: Sequence[str], *, purpose: Purpose, deadline: float | None = None) -> Matrix:
        """See the port; within ``deadline`` seconds in total, by default 8 for a query."""
        limit = min(self._spec.max_chars, self._quirks.chars)
        prepared = prepare(texts, limit)
        if prepared.cut:
            _log.warning(cut_note(prepared.cut, limit))
        if not prepared.texts:
            return np.zeros((0, self._dimension or 0), dtype=np.float32)
        seconds = deadline if deadline is not None else self._allowance(purpose, len(prepared.texts))
        if self._closed:
            raise EmbedderClosed
        await self._wire.open()  # not the service's time
        with self._breaker.guard():
            try:
                async with asyncio.timeout(seconds):
                    end = asyncio.get_running_loop().time() + seconds
                    return await self._all(prepared.texts, Effort(ATTEMPTS[purpose], end))
            except TimeoutError as e:
                raise ServiceFault("timeout", base=self._spec.base) from e

    async def space(self) -> VectorSpace:
        """The space, the model resolved and the dimension seen; asks the service once."""
        if self._dimension is None:
            await self.embed(["你好"], purpose="query")
        return replace(self._spec.space, resolved_model=self._model, dimension=self._dimension)

    async def aclose(self) -> None:
        """Close the connections."""
        self._closed = True
        await self._wire.aclose()

    def _allowance(self, purpose: Purpose, count: int) -> float:
        if purpose == "query":
            return min(QUERY_SECONDS, self._spec.timeout)
        return self._spec.timeout * max(1, ceil(count / self._quirks.batch / CONCURRENCY))

    async def _all(self, texts: tuple[str, ...], effort: Effort) -> Matrix:
        await self._resolve()
        rows: list[Matrix] = []
        while texts and not self._answered:  # lessons first: one batch alone until the endpoint has answered
            first, texts = texts[: self._quirks.batch], texts[self._quirks.batch :]
            rows.append(await self._batch(first, effort))
        rows += await _together([self._batch(part, effort) for part in chunks(texts, self._quirks.batch)])
        return np.concatenate(rows)

    async def _batch(self, texts: tuple[str, ...], effort: Effort) -> Matrix:
        async with self._lines:
            rows, learnt = await self._fetch(texts, self._quirks, effort)
        self._learn(learnt)
        self._answered = True
        known = self._dimension = self._dimension or rows.shape[1]
        if rows.shape[1] != known:
            raise EmbeddingUnavailable(_drifted(self._spec, rows.shape[1], known))
        return rows

    def _learn(self, learnt: Quirks) -> None:
        merged = self._quirks.merged(learnt)
        if merged != self._quirks:
            _log.info("嵌入服务 %s 的脾气：%s", self._spec.base, merged)
        if merged.chars < self._quirks.chars:
            _log.warning(_short(self._spec, merged.chars))
        self._quirks = merged

    async def _fetch(self, texts: tuple[str, ...], quirks: Quirks, effort: Effort) -> tuple[Matrix, Quirks]:
        """Rows of one batch and the way of asking that brought them."""
        while True:
            if len(texts) > quirks.batch:
                return await self._in_parts(texts, quirks, effort)
            texts = tuple(text[: quirks.chars] for text in texts)
            try:
                return await self._insist(texts, quirks, effort), quirks
            except ServiceFault as fault:
                changed = lesson(quirks, fault, sent=len(texts), longest=max(map(len, texts)))
                if changed is None:
                    raise await self._explained(fault) from fault
                quirks = changed

    async def _in_parts(self, texts: tuple[str, ...], quirks: Quirks, effort: Effort) -> tuple[Matrix, Quirks]:
        rows: list[Matrix] = []
        for part in chunks(texts, quirks.batch):
            more, learnt = await self._fetch(part, quirks, replace(effort, doubtful=False))
            quirks = quirks.merged(learnt)
            rows.append(more)
        return np.concatenate(rows), quirks

    async def _insist(self, texts: tuple[str, ...], quirks: Quirks, effort: Effort) -> Matrix:
        """Ask, and ask again after a pause where that may help and the time allows it."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._once(texts, quirks)
            except ServiceFault as fault:
                pause = _pause(attempt, fault.retry_after)
                late = asyncio.get_running_loop().time() + pause >= effort.end
                if late or not _again(fault, attempt, effort):
                    raise
                await self._sleep(pause)

    async def _once(self, texts: tuple[str, ...], quirks: Quirks) -> Matrix:
        raw = await self._wire.ask(Ask(texts, self._model, self._spec.dimensions), quirks)
        try:
            return await asyncio.to_thread(unit_rows, raw, count=len(texts))
        except BadVectors as bad:
            kind = "answer" if bad.count_is_wrong else "vectors"
            raise ServiceFault(kind, base=self._spec.base, status=200, detail=bad.why) from bad

    async def _explained(self, fault: ServiceFault) -> EmbeddingUnavailable:
        """A missing model is named together with what the server has, a bound on the length with its setting."""
        if too_long(fault):
            return ServiceFault("long", base=self._spec.base, status=fault.status, detail=fault.detail)
        if fault.kind != "missing":
            return fault
        try:
            served = await self._wire.models()
        except ServiceFault:
            return fault
        words = f"没有 {self._model}，{named(served)}"
        return ServiceFault("missing", base=self._spec.base, status=fault.status, detail=words)

    async def _resolve(self) -> None:
        async with self._resolving:
            if self._model:
                return
            recorded = self._spec.space.resolved_model
            served = await self._wire.models()
            found = pick(served, prefer=recorded)
            if found is None:
                raise EmbeddingUnavailable(_no_model(self._spec, named(served)))
            if self._spec.pinned and recorded and not same_model(found, recorded):
                raise EmbeddingUnavailable(_gone(self._spec, recorded, named(served)))
            self._model = found


async def _together(calls: Sequence[Awaitable[Matrix]]) -> list[Matrix]:
    """Run all; when one fails, end the others before its error goes on."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _again(fault: ServiceFault, attempt: int, effort: Effort) -> bool:
    if too_long(fault):
        return False  # the same text stays too long
    if fault.kind in ("answer", "vectors"):
        return effort.doubtful and attempt == 1
    return fault.worth_retrying and attempt < effort.tries


def _pause(attempt: int, retry_after: float | None) -> float:
    first, longest = _PAUSES
    grown = min(first * 2 ** (attempt - 1), longest) * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, not a secret
    return max(grown, retry_after or 0.0)


def _short(spec: ServiceSpec, chars: int) -> str:
    return (
        f"嵌入服务 {spec.base} 收不下更长的文本，从此只用前 {chars} 字计算向量（原文完整保存，按字词仍可检索），"
        "要每次都这样请设 EMBEDDING_MAX_CHARS"
    )


def _drifted(spec: ServiceSpec, now: int, before: int) -> str:
    return (
        f"嵌入服务 {spec.base} 的向量从 {before} 维变成了 {now} 维，服务上的模型可能被换掉了，"
        "请换回原来的模型，或运行 ambot memory reindex"
    )


def _no_model(spec: ServiceSpec, has: str) -> str:
    advice = "请先运行 ollama pull bge-m3，或" if spec.space.protocol == "ollama-embed" else "请"
    return f"嵌入服务 {spec.base} 上找不到嵌入模型（{has}），{advice}在 EMBEDDING_MODEL_NAME 写明模型名"


def _gone(spec: ServiceSpec, recorded: str, has: str) -> str:
    return (
        f"嵌入服务 {spec.base} 上已经没有记忆库所用的模型 {recorded}（{has}），"
        "请装回它，或运行 ambot memory reindex 换用新的模型"
    )
