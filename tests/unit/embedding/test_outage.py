"""A service that goes away and comes back, over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import numpy as np
import pytest
from support.embed_server import EmbedServer

from amrita_plugin_memory.embedding import FakeEmbedder, build_embedder
from amrita_plugin_memory.embedding.cached import QueryCache
from amrita_plugin_memory.embedding.service.breaker import FIRST_PAUSE
from amrita_plugin_memory.embedding.service.endpoint import ServiceProtocol
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable
from amrita_plugin_memory.settings import EnvSettings

BOTH = pytest.mark.parametrize("protocol", ["ollama-embed", "openai"])


@pytest.fixture
async def server() -> AsyncIterator[EmbedServer]:
    async with EmbedServer() as running:
        yield running


@BOTH
async def test_an_outage_is_said_in_one_sentence_refused_at_once_and_heals_by_itself(
    server: EmbedServer, protocol: ServiceProtocol
) -> None:
    clock = ManualClock()
    env = EnvSettings(embedding_model_url=server.url, embedding_proctol=protocol, embedding_model_name="bge-m3")
    embedder = build_embedder(env, clock=clock)
    await embedder.embed(["起初"], purpose="query")
    await server.stop()
    with pytest.raises(EmbeddingUnavailable, match=r"没有应答（连接被拒绝），请检查 EMBEDDING_MODEL_URL"):
        await embedder.embed(["停了"], purpose="query")
    await server.start()
    before = len(server.requests)
    with pytest.raises(EmbeddingUnavailable, match="连接被拒绝"):
        await embedder.embed(["又在了，但还没到时候"], purpose="query")
    assert len(server.requests) == before
    clock.advance(seconds=FIRST_PAUSE)
    assert (await embedder.embed(["恢复"], purpose="query")).shape == (1, server.dimension)
    await embedder.aclose()


@BOTH
async def test_a_question_asked_before_is_answered_during_an_outage(
    server: EmbedServer, protocol: ServiceProtocol
) -> None:
    env = EnvSettings(embedding_model_url=server.url, embedding_proctol=protocol)
    embedder = build_embedder(env)
    before = await embedder.embed(["花生"], purpose="query")
    server.faults.hang = True
    assert np.array_equal(await embedder.embed(["花生"], purpose="query"), before)
    await embedder.aclose()


async def test_the_cache_is_bounded_forgets_the_oldest_and_hands_out_copies() -> None:
    inner = FakeEmbedder()
    cache = QueryCache(inner, capacity=2)
    for text in ("甲", "乙", "甲", "丙", "甲", "乙"):
        (await cache.embed([text], purpose="query"))[:] = 0
    assert [call.texts[0] for call in inner.calls] == ["甲", "乙", "丙", "乙"]
    assert (await cache.embed(["甲"], purpose="query")).any()


async def test_passages_are_never_taken_from_the_cache() -> None:
    inner = FakeEmbedder()
    cache = QueryCache(inner)
    for purpose in ("query", "passage", "passage"):
        await cache.embed(["同一句"], purpose=cast("str", purpose))  # pyright: ignore[reportArgumentType]
    assert len(inner.calls) == 3
