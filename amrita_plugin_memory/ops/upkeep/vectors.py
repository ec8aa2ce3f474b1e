"""Vectors for many rows: in batches, a few at once, patient with an outage, and never stopped by one bad text."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, TypeVar

import numpy as np

from amrita_plugin_memory.embedding.ports import Embedder, Matrix
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable, InvalidInput
from amrita_plugin_memory.kernel.text import is_blank
from amrita_plugin_memory.retrieval.fingerprint import PROBE_TEXT

T = TypeVar("T")
Sleep: TypeAlias = Callable[[float], Awaitable[None]]

AT_ONCE: Final = 4
PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)  # seconds; longer in sum than a service needs to restart
_log = logging.getLogger("amrita_memory.ops")


class Vectors:
    """Turns texts into vectors for a rebuild. ``dimension`` is known after ``open``."""

    def __init__(self, embedder: Embedder, *, batch: int, sleep: Sleep = asyncio.sleep) -> None:
        self._embedder = embedder
        self._batch = batch
        self._sleep = sleep
        self._lines = asyncio.Semaphore(AT_ONCE)
        self.dimension = 0

    async def open(self) -> None:
        """Ask the embedder for its dimension, at once: patience is for work that has begun.

        Raises:
            EmbeddingUnavailable: it does not answer.

        """
        space = await self._embedder.space()
        self.dimension = space.dimension or 0
        if not self.dimension:
            self.dimension = int((await self._embedder.embed([PROBE_TEXT], purpose="passage")).shape[1])

    async def of(self, texts: Sequence[str]) -> list[Matrix | None]:
        """One vector a text; None for a text that is blank or that the service refuses.

        Raises:
            EmbeddingUnavailable: the service does not answer, also not after a while.

        """
        found: list[Matrix | None] = [None] * len(texts)
        places = [i for i, text in enumerate(texts) if not is_blank(text)]
        parts = [places[start : start + self._batch] for start in range(0, len(places), self._batch)]
        tasks = [asyncio.create_task(self._one_line([texts[i] for i in part])) for part in parts]
        try:
            results = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        for part, vectors in zip(parts, results, strict=True):
            for place, vector in zip(part, vectors, strict=True):
                found[place] = vector
        return found

    def zeros(self) -> Matrix:
        """What stands for a vector that could not be had: nothing is like it."""
        return np.zeros(self.dimension, dtype=np.float32)

    async def _one_line(self, texts: list[str]) -> list[Matrix | None]:
        async with self._lines:
            return await self._batch_of(texts)

    async def _batch_of(self, texts: list[str]) -> list[Matrix | None]:
        try:
            return list(await self._patiently(lambda: self._embedder.embed(texts, purpose="passage"), doubt=True))
        except (EmbeddingUnavailable, InvalidInput):
            if not await self._answers():
                raise
        if len(texts) == 1:  # the embedder itself has asked for it several times
            _log.warning("[Memory] 有一条文本（%d 字）嵌入服务不接受，暂时只能按字词找到它", len(texts[0]))
            return [None]
        middle = len(texts) // 2
        return [*await self._batch_of(texts[:middle]), *await self._batch_of(texts[middle:])]

    async def _patiently(self, call: Callable[[], Awaitable[T]], *, doubt: bool = False) -> T:
        for pause in PAUSES:
            try:
                return await call()
            except EmbeddingUnavailable as e:
                if doubt and await self._answers():
                    raise  # it answers others: these texts are the trouble
                _log.warning("[Memory] 嵌入服务没有应答，%d 秒后再试：%s", pause, e)
                await self._sleep(pause)
        return await call()

    async def _answers(self) -> bool:
        try:
            await self._embedder.embed([PROBE_TEXT], purpose="passage")
        except (EmbeddingUnavailable, InvalidInput):
            return False
        return True
