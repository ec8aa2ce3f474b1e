"""Every store swaps in one step, and handles that were open follow."""

import numpy as np
import pytest

from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.retrieval import GatedStore
from amrita_plugin_memory.settings import EnvSettings
from amrita_plugin_memory.vectordb import MemoryStore, Row, open_store


@pytest.fixture(params=["memory", "local", "gated"])
async def store(request, tmp_path):
    local = request.param != "memory"
    inner = await open_store(EnvSettings(), directory=tmp_path / "chroma") if local else MemoryStore()
    store = GatedStore(inner) if request.param == "gated" else inner
    yield store
    await store.aclose()


async def test_a_swap_puts_the_new_in_the_place_of_the_old_and_keeps_the_old_aside(store):
    main, new = await store.open("main"), await store.open("main__rebuild")
    await main.add([Row("a", "旧", {"user_id": "u"}, np.ones(4, np.float32))])
    await new.add([Row("b", "新", {"user_id": "u"}, np.ones(2, np.float32))])
    assert (await main.partition("u")).rows[0].document == "旧"
    await store.swap("main", "main__rebuild", aside="main__old")
    assert (await main.partition("u")).rows[0].document == "新"
    assert set(await store.names()) == {"main", "main__old"}
    assert [row.id for row in await (await store.open("main__old")).get(["a"])] == ["a"]


async def test_a_swap_with_nothing_changes_nothing(store):
    main = await store.open("main")
    await main.add([Row("a", "旧", {"user_id": "u"}, np.ones(4, np.float32))])
    with pytest.raises(AmritaMemoryError):
        await store.swap("main", "main__rebuild", aside="main__old")
    assert await main.count() == 1
    assert set(await store.names()) == {"main"}
