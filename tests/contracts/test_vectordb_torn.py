"""Chroma was killed while it saved its vector index: the texts answer at once, and the vectors come back."""

import asyncio
import shutil
from contextlib import asynccontextmanager

import numpy as np
import pytest
from support.upkeep import Light, contents, fact, fill, place, whole_space

from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.ops.jobs.startup import check_in
from amrita_plugin_memory.retrieval import GatedStore
from amrita_plugin_memory.settings import EnvSettings
from amrita_plugin_memory.vectordb import open_store
from amrita_plugin_memory.vectordb.ports import VECTORS_MISSING
from amrita_plugin_memory.vectordb.torn.files import damaged

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("torn")]
ROWS = 1_100  # Chroma saves its index at every thousandth
MODEL = Light(dimension=16)
CUTS = {
    "zeroed": lambda data: bytes(len(data)),
    "zeroed from the middle": lambda d: d[: len(d) // 2].ljust(len(d), b"\0"),
    "emptied": lambda data: b"",
    "halved": lambda data: data[: len(data) // 2],
    "cut by a byte": lambda d: d[:-1],
}


@asynccontextmanager
async def opened(folder, **options):
    store = GatedStore(await open_store(EnvSettings(), directory=folder / "vector_db.chroma", **options))
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A directory whose index holds 1,000 of 1,100 rows; the others are in the log."""
    folder = tmp_path_factory.mktemp("whole")
    asyncio.run(make(folder))
    return folder


async def make(folder):
    async with opened(folder) as store:
        await fill(store, [fact(n, key=f"QQPlatform_Private_{n % 10}") for n in range(ROWS)], MODEL)


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "bot")


def index_file(folder, name):
    return next(folder.glob(f"vector_db.chroma/*-*/{name}"))


def tear(folder, name, how):
    path = index_file(folder, name)
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(CUTS[how](path.read_bytes()))


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("header.bin", "emptied"),
        ("header.bin", "halved"),  # ends the process when Chroma gets to see it
        ("header.bin", "gone"),
        ("header.bin", "zeroed"),
        ("header.bin", "zeroed from the middle"),
        ("data_level0.bin", "cut by a byte"),
        ("data_level0.bin", "gone"),
        ("length.bin", "gone"),
        ("link_lists.bin", "gone"),
        ("link_lists.bin", "emptied"),  # reads well, and the next save never comes back
        ("link_lists.bin", "halved"),
        ("link_lists.bin", "zeroed"),
        ("index_metadata.pickle", "emptied"),
        ("index_metadata.pickle", "halved"),
        ("index_metadata.pickle", "gone"),
    ],
)
async def test_a_torn_index_costs_no_text_and_the_start_up_check_brings_the_vectors_back(folder, name, how):
    tear(folder, name, how)
    async with opened(folder) as store:
        facts = await store.open(COLLECTION)
        partition = await facts.partition("QQPlatform_Private_3")
        assert [row.id for row in partition.rows] == [fact(n).id for n in range(3, ROWS, 10)]
        assert (await facts.metadata())[VECTORS_MISSING] is True
        lost = [row for row in (await contents(store)).values() if not row[2].any()]
        assert 0 < len(lost) < ROWS  # what the log still has is not lost
        found = await check_in(place(folder, store=store, embedder=MODEL))
        assert found.states[COLLECTION] == "same"
        assert VECTORS_MISSING not in await facts.metadata()
        assert await whole_space(store, MODEL)
    async with opened(folder) as store:
        assert await whole_space(store, MODEL)
    assert not damaged(folder / "vector_db.chroma")


async def test_facts_can_be_written_and_deleted_while_vectors_are_missing(folder):
    tear(folder, "index_metadata.pickle", "halved")
    async with opened(folder) as store:
        await fill(store, [fact(5_000)], MODEL)
        facts = await store.open(COLLECTION)
        assert await facts.delete([fact(1).id, fact(1_050).id]) == 2
        await check_in(place(folder, store=store, embedder=MODEL))
    async with opened(folder) as store:
        found = await contents(store)
        assert len(found) == ROWS - 1
        assert fact(5_000).id in found
        assert await whole_space(store, MODEL)


async def test_a_sound_index_is_left_alone(folder):
    before = {path.name for path in (folder / "vector_db.chroma").iterdir() if path.is_dir()}
    async with opened(folder) as store:
        facts = await store.open(COLLECTION)
        assert VECTORS_MISSING not in await facts.metadata()
        assert await whole_space(store, MODEL)
    assert {path.name for path in (folder / "vector_db.chroma").iterdir() if path.is_dir()} == before


async def test_what_only_looks_says_what_to_do_and_changes_nothing(folder):
    tear(folder, "header.bin", "halved")
    torn = index_file(folder, "header.bin").read_bytes()
    with pytest.raises(StoreUnavailable, match="文字都在") as caught:
        async with opened(folder, writable=False) as store:
            await store.open(COLLECTION)
    assert "reindex" in str(caught.value)
    assert index_file(folder, "header.bin").read_bytes() == torn


async def test_what_was_put_aside_goes_with_its_collection(folder):
    tear(folder, "header.bin", "emptied")
    async with opened(folder) as store:
        await store.open(COLLECTION)
        assert list(folder.glob("vector_db.chroma/*.torn"))
        await store.drop(COLLECTION)
        assert not list(folder.glob("vector_db.chroma/*.torn"))


async def test_no_zeros_are_given_to_rows_that_have_their_vector(folder):
    tear(folder, "index_metadata.pickle", "gone")
    async with opened(folder) as store:
        found = await contents(store)
        kept = [i for i, (_, _, vector) in found.items() if vector.any()]
        asked = await MODEL.embed([found[i][0] for i in kept], purpose="passage")
        assert all(np.allclose(found[i][2], vector, atol=1e-5) for i, vector in zip(kept, asked, strict=True))
        assert len(kept) >= ROWS - 1_000
