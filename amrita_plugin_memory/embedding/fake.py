"""The twin for tests and simulations: deterministic vectors, faults by switch, every call written down."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable

from .hashed import ngram_rows
from .ports import EmbedderClosed, Matrix, Purpose, VectorSpace
from .texts import prepare


@dataclass(frozen=True, slots=True)
class Call:
    """One call of ``embed`` as it was made."""

    texts: tuple[str, ...]
    purpose: Purpose


@dataclass(slots=True)
class FakeEmbedder:
    """Texts that share characters lie near each other; ``model`` seeds the space, so two models do not agree.

    ``means`` maps a word to the words it stands for, so that a test can have a paraphrase found by meaning
    (``{"坚果": "花生"}``). Switches: ``down`` refuses every call, ``hang`` waits until the deadline or for ever,
    ``fail_after`` refuses from that many calls on, ``dimension`` may be changed between calls.
    """

    model: str = "fake"
    dimension: int = 64
    meaningful: bool = True
    means: Mapping[str, str] = field(default_factory=dict[str, str])
    down: bool = False
    hang: bool = False
    fail_after: int | None = None
    max_chars: int = 2_000
    calls: list[Call] = field(default_factory=list[Call])
    closed: bool = False

    async def embed(self, texts: Sequence[str], *, purpose: Purpose, deadline: float | None = None) -> Matrix:
        """Feature-hashed rows, after the faults that are switched on."""
        prepared = prepare(texts, self.max_chars)
        self.calls.append(Call(prepared.texts, purpose))
        if self.hang:
            await self._wait(deadline)
        if self.closed:
            raise EmbedderClosed
        if self.down or (self.fail_after is not None and len(self.calls) > self.fail_after):
            raise EmbeddingUnavailable("嵌入服务没有应答（测试中关闭），请稍后再试")
        return ngram_rows([self._spelled_out(t) for t in prepared.texts], dimension=self.dimension, salt=self.model)

    async def space(self) -> VectorSpace:
        """The space named by ``model``."""
        if self.closed:
            raise EmbedderClosed
        if self.down:
            raise EmbeddingUnavailable("嵌入服务没有应答（测试中关闭），请稍后再试")
        return VectorSpace(
            protocol="fake",
            model=self.model,
            base_url="",
            resolved_model=self.model,
            dimension=self.dimension,
            meaningful=self.meaningful,
        )

    async def aclose(self) -> None:
        """Refuse every later call."""
        self.closed = True

    def _spelled_out(self, text: str) -> str:
        for word, meaning in self.means.items():
            text = text.replace(word, f"{word} {meaning}")
        return text

    async def _wait(self, deadline: float | None) -> None:
        try:
            async with asyncio.timeout(deadline):
                await asyncio.Event().wait()
        except TimeoutError as e:
            raise EmbeddingUnavailable("嵌入服务没有在限定时间内应答，请稍后再试") from e
