"""Every awkward server of the issue, over a real socket: adapt, remember it, never hand out a broken vector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
from support.embed_server import EVER, EmbedServer

from amrita_plugin_memory.embedding.hashed import ngram_rows
from amrita_plugin_memory.embedding.ports import VectorSpace
from amrita_plugin_memory.embedding.service.connect import first_way, service_embedder, service_space
from amrita_plugin_memory.embedding.service.endpoint import ServiceProtocol, normalise
from amrita_plugin_memory.embedding.service.http import Access
from amrita_plugin_memory.embedding.service.service import ServiceEmbedder, ServiceSpec
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable

TEXTS = [f"第 {i} 条记忆" for i in range(25)]
BOTH = pytest.mark.parametrize("protocol", ["ollama-embed", "openai"])


@pytest.fixture
async def server() -> AsyncIterator[EmbedServer]:
    async with EmbedServer() as running:
        yield running


class Maker:
    """Embedders over one server, closed at the end; pauses are written down instead of waited for."""

    def __init__(self, server: EmbedServer) -> None:
        self.server = server
        self.clock = ManualClock()
        self.pauses: list[float] = []
        self.made: list[ServiceEmbedder] = []

    def __call__(
        self,
        protocol: ServiceProtocol = "openai",
        *,
        model: str = "bge-m3",
        dimensions: int = 0,
        key: str = "",
        timeout: float = 30.0,
        recorded: VectorSpace | None = None,
    ) -> ServiceEmbedder:
        access = Access(normalise(self.server.url, protocol), key, timeout)
        spec = ServiceSpec(
            base=access.endpoint.base,
            space=service_space(access.endpoint, model=model, base_url=self.server.url, recorded=recorded),
            start=first_way(protocol, batch=32, dimensions=dimensions),
            timeout=timeout,
            dimensions=dimensions,
            pinned=recorded is not None,
        )
        embedder = service_embedder(access, spec, self.clock, sleep=self._sleep)
        self.made.append(embedder)
        return embedder

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
async def make(server: EmbedServer) -> AsyncIterator[Maker]:
    maker = Maker(server)
    yield maker
    for embedder in maker.made:
        await embedder.aclose()


async def _good(embedder: ServiceEmbedder, server: EmbedServer, texts: list[str] = TEXTS) -> None:
    """Rows are right: the same as a server without faults gives, each in its place."""
    rows = await embedder.embed(texts, purpose="passage")
    assert rows.shape == (len(texts), server.dimension)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    reference = ngram_rows(texts, dimension=server.dimension, salt="bge-m3")
    assert np.allclose(rows, reference, atol=1e-5)


@pytest.mark.parametrize("unnamed", [False, True])
async def test_a_server_that_rejects_encoding_format_is_asked_without_it_from_then_on(
    server: EmbedServer, make: Maker, unnamed: bool
) -> None:
    server.faults.reject_encoding_format, server.faults.unnamed = True, unnamed
    embedder = make()
    await _good(embedder, server)
    await embedder.embed(["再来"], purpose="passage")
    asked = server.asked("/v1/embeddings")
    assert ["encoding_format" in r.body for r in asked] == [True, False, False]


@BOTH
@pytest.mark.parametrize("unnamed", [False, True])
async def test_a_server_that_rejects_dimensions_is_asked_without_them_from_then_on(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol, unnamed: bool
) -> None:
    server.faults.reject_dimensions, server.faults.unnamed = True, unnamed
    embedder = make(protocol, dimensions=16)
    await _good(embedder, server)
    before = len(server.requests)
    await embedder.embed(["再来"], purpose="passage")
    assert [("dimensions" in r.body) for r in server.requests[before:]] == [False]


@BOTH
async def test_dimensions_are_asked_for_where_the_server_bears_it(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    assert (await make(protocol, dimensions=16).embed(["好"], purpose="passage")).shape == (1, 16)


async def test_base64_that_nobody_asked_for_is_understood(server: EmbedServer, make: Maker) -> None:
    server.faults.base64_always = True
    await _good(make(), server)


async def test_rows_that_come_in_another_order_are_put_back_by_their_index(server: EmbedServer, make: Maker) -> None:
    server.faults.shuffled = True
    await _good(make(), server)


@BOTH
@pytest.mark.parametrize("how", ["400", "413", "empty", "truncate", "error body", "unnamed"])
async def test_a_server_that_takes_ten_inputs_a_call_is_learnt_and_not_overasked_again(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol, how: str
) -> None:
    server.faults.max_inputs, server.faults.over_limit = 10, how  # pyright: ignore[reportAttributeAccessIssue]
    embedder = make(protocol)
    await _good(embedder, server)
    assert embedder.quirks.batch <= 10
    before = len(server.batches)
    await embedder.embed(TEXTS, purpose="passage")
    assert max(server.batches[before:]) <= 10


async def test_a_limit_that_the_server_names_is_used_to_the_full(server: EmbedServer, make: Maker) -> None:
    server.faults.max_inputs = 10
    await make().embed(TEXTS, purpose="passage")
    assert server.batches == [25, 10, 10, 5]


async def test_one_text_that_is_always_refused_teaches_nothing_about_the_endpoint(
    server: EmbedServer, make: Maker
) -> None:
    server.faults.poisoned = "毒"
    embedder = make()
    with pytest.raises(EmbeddingUnavailable, match="拒绝了请求（400"):
        await embedder.embed([*TEXTS, "有毒的文本"], purpose="passage")
    assert embedder.quirks == first_way("openai", batch=32, dimensions=0)
    await _good(embedder, server)


LONG = "一段很长的记忆，" * 100  # 800 characters


@BOTH
@pytest.mark.parametrize(
    "over",
    [
        (413, "input must have less than {limit} tokens"),
        (400, "maximum context length is {limit} tokens"),
        (500, "input is too large to process. increase the physical batch size (current batch size: {limit})"),
    ],
)
async def test_a_text_over_the_token_limit_is_cut_with_a_note_and_the_bound_is_remembered(
    server: EmbedServer,
    make: Maker,
    protocol: ServiceProtocol,
    over: tuple[int, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.faults.max_tokens, server.faults.over_tokens = 512, over
    embedder = make(protocol)
    rows = await embedder.embed(["短", LONG], purpose="passage")
    reference = ngram_rows(["短", LONG[:400]], dimension=server.dimension, salt="bge-m3")
    assert np.allclose(rows, reference, atol=1e-5)
    assert (embedder.quirks.chars, embedder.quirks.batch) == (400, 32)
    assert "EMBEDDING_MAX_CHARS" in caplog.text
    before = len(server.batches)
    await embedder.embed([LONG, "短", LONG], purpose="passage")
    assert server.batches[before:] == [3]
    assert "2 条文本超过 400 字" in caplog.text
    assert make.pauses == []


async def test_a_server_that_finds_every_text_too_long_is_given_up_with_the_setting_that_helps(
    server: EmbedServer, make: Maker
) -> None:
    server.faults.max_tokens = 5
    embedder = make()
    with pytest.raises(EmbeddingUnavailable, match=r"太长.*less than 5 tokens.*请.*EMBEDDING_MAX_CHARS"):
        await embedder.embed([LONG], purpose="passage")
    assert embedder.quirks == first_way("openai", batch=32, dimensions=0)
    await embedder.embed(["短"], purpose="passage")


@BOTH
async def test_an_empty_list_once_is_asked_again(server: EmbedServer, make: Maker, protocol: ServiceProtocol) -> None:
    server.faults.empty_list = 1
    embedder = make(protocol)
    await _good(embedder, server)
    assert embedder.quirks.batch == 32


@BOTH
async def test_an_empty_list_for_ever_is_an_error_that_says_so(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.empty_list = EVER
    with pytest.raises(EmbeddingUnavailable, match=r"返回 0 条.*，请"):
        await make(protocol).embed(["好"], purpose="passage")


@BOTH
async def test_an_error_body_with_status_200_is_an_error_with_its_words(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.error_body = "model is loading"
    with pytest.raises(EmbeddingUnavailable, match="model is loading"):
        await make(protocol).embed(["好"], purpose="passage")


@BOTH
async def test_a_page_instead_of_json_is_an_error_that_points_at_the_address(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.not_json = True
    with pytest.raises(EmbeddingUnavailable, match="EMBEDDING_MODEL_URL"):
        await make(protocol).embed(["好"], purpose="passage")


@BOTH
@pytest.mark.parametrize("kind", ["empty", "short", "ragged", "zero", "nan", "inf", "text"])
async def test_a_broken_vector_never_comes_out(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol, kind: str
) -> None:
    server.faults.bad_vector = kind  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(EmbeddingUnavailable, match="，请"):
        await make(protocol).embed(["好", "坏"], purpose="passage")


@BOTH
async def test_a_dimension_that_changes_between_calls_is_refused(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.dimension_after = (1, 48)
    embedder = make(protocol)
    await embedder.embed(["一"], purpose="passage")
    with pytest.raises(EmbeddingUnavailable, match="从 32 维变成了 48 维"):
        await embedder.embed(["二"], purpose="passage")


@BOTH
async def test_429_is_retried_after_the_time_the_server_names(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.busy, server.faults.retry_after = 2, "3"
    await _good(make(protocol), server)
    assert len(make.pauses) == 2
    assert min(make.pauses) >= 3


@BOTH
async def test_a_retry_after_beyond_the_deadline_is_not_waited_for(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.busy, server.faults.retry_after = EVER, "120"
    with pytest.raises(EmbeddingUnavailable, match="请求太多（429）"):
        await make(protocol).embed(["好"], purpose="query")
    assert make.pauses == []
    assert len(server.batches) == 1


@BOTH
async def test_errors_of_the_server_are_retried_with_growing_pauses_and_then_named(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.broken = EVER
    with pytest.raises(EmbeddingUnavailable, match="自己出错（500"):
        await make(protocol).embed(["好"], purpose="passage")
    assert len(make.pauses) == 3
    assert make.pauses[2] > make.pauses[0]


@BOTH
async def test_a_server_that_hangs_is_given_up_at_the_deadline(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    embedder = make(protocol)
    await embedder.embed(["先行"], purpose="query")
    server.faults.hang = True
    with pytest.raises(EmbeddingUnavailable, match="没有在限定时间内应答，请"):
        await embedder.embed(["好"], purpose="query", deadline=0.2)


@BOTH
async def test_a_slow_server_is_waited_for_within_the_deadline(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.slow = 0.05
    await make(protocol).embed(["好"], purpose="query", deadline=20)


async def test_an_ollama_without_the_new_route_is_asked_by_the_old_one_from_then_on(
    server: EmbedServer, make: Maker
) -> None:
    server.faults.old_ollama = True
    embedder = make("ollama-embed")
    await _good(embedder, server, TEXTS[:5])
    await embedder.embed(["再来"], purpose="passage")
    assert len(server.asked("/api/embed")) == 1
    assert len(server.asked("/api/embeddings")) == 6


@BOTH
async def test_a_model_the_server_has_not_is_named_together_with_what_it_has(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    with pytest.raises(EmbeddingUnavailable, match=r"没有 nomic-embed-text.*bge-m3:latest、qwen3:8b.*，请"):
        await make(protocol, model="nomic-embed-text").embed(["好"], purpose="passage")


@BOTH
async def test_auto_takes_an_embedding_model_that_the_server_really_has(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    embedder = make(protocol, model="auto")
    space = await embedder.space()
    assert (space.model, space.resolved_model, space.dimension) == ("auto", "bge-m3:latest", 32)
    assert {r.body.get("model") for r in server.requests if "embed" in r.path} == {"bge-m3:latest"}


async def test_auto_believes_what_ollama_says_about_a_model_rather_than_its_name(
    server: EmbedServer, make: Maker
) -> None:
    server.models, server.embedding_models = ["embed-but-chats", "my-own"], ["my-own"]
    assert (await make("ollama-embed", model="auto").space()).resolved_model == "my-own"


@BOTH
async def test_auto_on_a_server_with_chat_models_only_names_them(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.models, server.embedding_models = ["llama3:8b", "qwen3:8b"], []
    with pytest.raises(EmbeddingUnavailable, match=r"只有 llama3:8b、qwen3:8b.*EMBEDDING_MODEL_NAME"):
        await make(protocol, model="auto").embed(["好"], purpose="passage")


@BOTH
async def test_auto_stays_with_the_recorded_model_and_takes_no_other_when_it_is_gone(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    recorded = VectorSpace(protocol, "auto", server.url, resolved_model="nomic-embed-text:latest", dimension=32)
    server.models = server.embedding_models = ["bge-m3:latest", "nomic-embed-text:latest"]
    assert (await make(protocol, model="auto", recorded=recorded).space()).resolved_model == "nomic-embed-text:latest"
    server.models = server.embedding_models = ["bge-m3:latest"]
    with pytest.raises(EmbeddingUnavailable, match=r"已经没有记忆库所用的模型 nomic-embed-text.*reindex"):
        await make(protocol, model="auto", recorded=recorded).space()


@BOTH
async def test_a_wrong_key_is_said_at_once_and_not_retried(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.key = "right"
    with pytest.raises(EmbeddingUnavailable, match=r"不接受密钥（401）.*EMBEDDING_MODEL_API_KEY"):
        await make(protocol, key="wrong").embed(["好"], purpose="passage")
    assert make.pauses == []


@BOTH
async def test_a_redirect_is_named_and_not_followed(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    async with EmbedServer() as elsewhere:
        server.faults.redirect = elsewhere.url + ("/v1/embeddings" if protocol == "openai" else "/api/embed")
        with pytest.raises(EmbeddingUnavailable, match="转到别的地址（307）"):
            await make(protocol, key="secret").embed(["好"], purpose="passage")
        assert elsewhere.requests == []


@BOTH
async def test_lessons_are_learnt_once_also_when_many_batches_wait(
    server: EmbedServer, make: Maker, protocol: ServiceProtocol
) -> None:
    server.faults.max_inputs = 10
    embedder = make(protocol)
    await asyncio.wait_for(_good(embedder, server, [f"第 {i} 条" for i in range(120)]), 30)
    assert sum(size > 10 for size in server.batches) == 1
