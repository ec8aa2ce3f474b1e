"""The port of this room: text in, unit vectors out, and an honest name for the space they live in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Matrix: TypeAlias = "NDArray[np.float32]"
Purpose: TypeAlias = Literal["query", "passage"]

HASHED_NOTE: Final = (
    '没有可用的嵌入模型，现在只按字词检索；想按意思检索，请安装：pip install "amrita_plugin_memory[embedded]"'
)


class EmbedderClosed(EmbeddingUnavailable):
    """A call after ``aclose``."""

    def __init__(self) -> None:
        super().__init__("嵌入器已经关闭，请重新启动机器人")


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """What makes two vectors comparable; everything here is recorded with the collection.

    ``protocol``, ``model`` and ``base_url`` are the raw configured values (what the published plugin hashed);
    ``resolved_model`` is what the server really answered with (``auto`` resolved); ``package`` is
    ``name==version`` for the embedded models; ``prefix_rule`` names how queries and passages are marked.
    ``meaningful`` is False for hashed vectors, which only satisfy the store and must not be ranked by.
    """

    protocol: str
    model: str
    base_url: str
    resolved_model: str = ""
    package: str = ""
    prefix_rule: str = "none"
    dimension: int | None = None
    meaningful: bool = True

    @property
    def legacy_fingerprint(self) -> str:
        """sha256 of ``protocol|model|base_url`` as raw values: what the seed and the published plugin write."""
        return hashlib.sha256(f"{self.protocol}|{self.model}|{self.base_url}".encode()).hexdigest()


class Embedder(Protocol):
    """Turns texts into vectors; made from settings alone, independent of the host's start-up."""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose, deadline: float | None = None) -> Matrix:
        """One L2-normalised row a text, shape ``(len(texts), dimension)``, float32.

        ``deadline`` bounds the whole call in seconds, retries included; None takes the embedder's own bound (short
        for queries, which somebody waits for, longer for passages).

        Raises:
            InvalidInput: a blank text (refused before any call).
            EmbeddingUnavailable: the service is down, slow, refuses, or answers an empty, short, zero or NaN vector.

        """
        ...

    async def space(self) -> VectorSpace:
        """The space this embedder writes into, dimension included; may ask the service once.

        Raises:
            EmbeddingUnavailable: when that takes a service which does not answer.

        """
        ...

    async def aclose(self) -> None:
        """Release connections and threads; every later call raises EmbedderClosed."""
        ...
