"""What every vector store promises: the in-memory twin, the local directory, and a real server."""

import asyncio
import uuid

import numpy as np
import pytest

from amrita_plugin_memory.kernel.errors import Duplicate, InvalidInput, NotFound, SpaceMismatch
from amrita_plugin_memory.settings import EnvSettings
from amrita_plugin_memory.vectordb import MemoryStore, Row, open_store

pytestmark = pytest.mark.timeout(180)  # one of the tests starts the server for all


@pytest.fixture(params=["memory", "local", pytest.param("server", marks=pytest.mark.server)])
async def store(request, tmp_path):
    if request.param == "memory":
        store = MemoryStore()
    elif request.param == "local":
        store = await open_store(EnvSettings(), directory=tmp_path / "vector_db.chroma")
    else:
        server = request.getfixturevalue("chroma_server")
        store = await open_store(EnvSettings(vector_db_type="remote", vector_db_port=server.port))
    yield store
    await store.aclose()


@pytest.fixture
def name():
    return f"facts-{uuid.uuid4().hex}"


@pytest.fixture
async def facts(store, name):
    return await store.open(name)


def row(id, user="u1", document="喜欢花生", *, vector=(1, 0, 0, 0), **metadata):
    return Row(id, document, {"user_id": user, **metadata}, np.array(vector, dtype=np.float32))


def ids(rows):
    return [r.id for r in rows]


async def whole(facts):
    return [r.id async for page in facts.pages() for r in page]


async def test_a_missing_collection_is_not_made_when_it_should_not_be(store, name):
    assert await store.open(name, create=False) is None
    assert name not in await store.names()


async def test_an_opened_collection_is_listed_and_starts_empty(store, facts, name):
    assert name in await store.names()
    assert facts.name == name
    assert await facts.count() == 0
    assert await facts.metadata() == {}
    assert (await facts.partition("u1")).rows == ()


async def test_rows_come_back_whole_and_in_the_order_they_were_stored(facts):
    await facts.add([row("b", importance="high", vector=(1, 2, 3, 4)), row("a", n=7, x=0.5, yes=True)])
    await facts.add([row("c", user="u2"), row("d")])

    partition = await facts.partition("u1")

    assert ids(partition.rows) == ["b", "a", "d"]
    assert partition.rows[0].document == "喜欢花生"
    assert partition.rows[0].metadata == {"user_id": "u1", "importance": "high"}
    assert partition.rows[1].metadata == {"user_id": "u1", "n": 7, "x": 0.5, "yes": True}
    assert partition.matrix.dtype == np.float32
    assert partition.matrix.tolist()[0] == [1, 2, 3, 4]
    assert not partition.matrix.flags.writeable
    assert [r.vector for r in partition.rows] == [None] * 3
    assert partition.source
    assert await facts.size("u1") == 3
    assert await facts.count() == 4


async def test_a_key_is_never_taken_for_another_that_begins_with_it(facts):
    await facts.add([row("a", user="1234"), row("b", user="12345")])
    assert ids((await facts.partition("1234")).rows) == ["a"]
    assert ids((await facts.partition("12345")).rows) == ["b"]


async def test_get_answers_in_the_order_asked_and_leaves_out_what_is_not_there(facts):
    await facts.add([row("a"), row("b", vector=(0, 1, 0, 0))])
    assert ids(await facts.get(["b", "nobody", "a", "b"])) == ["b", "a"]
    assert (await facts.get(["a"]))[0].vector is None
    assert (await facts.get(["b"], vectors=True))[0].vector.tolist() == [0, 1, 0, 0]
    assert await facts.get([]) == []


async def test_a_known_id_is_refused_and_the_old_row_stays(facts):
    await facts.add([row("a", document="旧")])
    await facts.partition("u1")
    with pytest.raises(Duplicate) as caught:
        await facts.add([row("new"), row("a", document="新")])
    assert caught.value.id == "a"
    assert [(r.id, r.document) for r in (await facts.partition("u1")).rows] == [("a", "旧")]
    with pytest.raises(Duplicate):
        await facts.add([row("x"), row("x")])


async def test_an_unknown_id_is_not_updated_in_silence(facts):
    await facts.add([row("a")])
    with pytest.raises(NotFound):
        await facts.update([row("a", document="新"), row("nobody")])
    assert (await facts.get(["a"]))[0].document == "喜欢花生"


async def test_update_replaces_the_whole_metadata_and_keeps_the_vector_unless_given_one(facts):
    await facts.add([row("a", tags="旧", importance="low", vector=(1, 2, 3, 4)), row("b")])
    await facts.partition("u1")

    await facts.update([Row("a", "新", {"user_id": "u1", "importance": "high", "gone": None})])

    for stored in ((await facts.partition("u1")).rows[0], (await facts.get(["a"]))[0]):
        assert stored.document == "新"
        assert stored.metadata == {"user_id": "u1", "importance": "high"}
    assert (await facts.partition("u1")).matrix[0].tolist() == [1, 2, 3, 4]

    await facts.update([Row("a", None, {"user_id": "u1"}, np.array([4, 3, 2, 1], dtype=np.float32))])

    partition = await facts.partition("u1")
    assert partition.rows[0].document == "新"
    assert partition.matrix[0].tolist() == [4, 3, 2, 1]
    assert (await facts.get(["a"], vectors=True))[0].vector.tolist() == [4, 3, 2, 1]


async def test_a_row_can_move_to_another_partition(facts):
    await facts.add([row("a", user="user_1"), row("b", user="QQPlatform_Private_1"), row("c", user="user_1")])
    await facts.partition("user_1")
    await facts.partition("QQPlatform_Private_1")
    await facts.update([Row("a", None, {"user_id": "QQPlatform_Private_1"})])
    assert ids((await facts.partition("user_1")).rows) == ["c"]
    assert ids((await facts.partition("QQPlatform_Private_1")).rows) == ["a", "b"]


async def test_delete_counts_what_was_really_there(facts):
    await facts.add([row("a"), row("b"), row("c")])
    await facts.partition("u1")
    assert await facts.delete(["a", "nobody", "a", "c"]) == 2
    assert ids((await facts.partition("u1")).rows) == ["b"]
    assert await facts.delete(["a"]) == 0
    assert await facts.delete([]) == 0
    assert await facts.count() == 1


async def test_vectors_of_another_dimension_are_refused(facts):
    await facts.add([row("a")])
    with pytest.raises(SpaceMismatch):
        await facts.add([row("b", vector=(1, 0))])
    with pytest.raises(SpaceMismatch):
        await facts.update([row("a", vector=(1, 0))])
    with pytest.raises(SpaceMismatch):
        await facts.add([row("b"), row("c", vector=(1, 0))])
    assert await facts.count() == 1
    assert (await facts.get(["a"], vectors=True))[0].vector.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("vector", [None, (float("nan"), 0, 0, 0), (float("inf"), 0, 0, 0), ()])
async def test_a_row_without_a_usable_vector_is_refused(facts, vector):
    bad = Row("a", "x", {}, None if vector is None else np.array(vector, dtype=np.float32))
    with pytest.raises(InvalidInput):
        await facts.add([bad])
    assert await facts.count() == 0


async def test_rows_without_document_or_metadata_are_stored_beside_others(facts):
    vector = np.ones(4, dtype=np.float32)
    await facts.add([row("a"), Row("k1", None, {"kid": "1"}, vector), Row("k2", "有文本", {}, vector), row("z")])
    assert [(r.id, r.document, dict(r.metadata)) for r in await facts.get(["k1", "k2"])] == [
        ("k1", None, {"kid": "1"}),
        ("k2", "有文本", {}),
    ]
    assert await whole(facts) == ["a", "k1", "k2", "z"]
    await facts.update([Row("k1", None, {"kid": "2"}), Row("k2", "改", {"kid": "3"})])
    assert [(r.document, dict(r.metadata)) for r in await facts.get(["k1", "k2"])] == [
        (None, {"kid": "2"}),
        ("改", {"kid": "3"}),
    ]


async def test_annotations_merge_and_none_removes(facts):
    await facts.annotate({"embed_model": "m", "key_schema_version": 2})
    await facts.annotate({"embed_dim": 4, "embed_model": None})
    assert await facts.metadata() == {"embed_dim": 4, "key_schema_version": 2}
    await facts.annotate({"embed_dim": None, "key_schema_version": None})
    assert await facts.metadata() == {}
    await facts.annotate({"again": True})
    assert await facts.metadata() == {"again": True}


async def test_pages_give_every_row_once_in_order(facts):
    await facts.add([row(f"r{n}") for n in range(7)])
    assert [ids(page) async for page in facts.pages(size=3)] == [["r0", "r1", "r2"], ["r3", "r4", "r5"], ["r6"]]
    async for page in facts.pages(vectors=True):
        assert [r.vector.shape for r in page] == [(4,)] * 7


async def test_rows_deleted_while_paging_do_not_hide_others(facts):
    await facts.add([row(f"r{n}") for n in range(9)])
    seen = []
    async for page in facts.pages(size=3):
        seen += ids(page)
        await facts.delete(["r0", "r1", "r4"])
    assert seen == ["r0", "r1", "r2", "r3", "r5", "r6", "r7", "r8"]


async def test_many_rows_cross_every_batch_bound(facts):
    many = [row(f"r{n}", user=f"u{n % 2}", vector=(n % 7, 1, 0, 0)) for n in range(2_300)]
    await facts.add(many)
    assert await facts.count() == 2_300
    partition = await facts.partition("u1")
    assert ids(partition.rows) == [f"r{n}" for n in range(1, 2_300, 2)]
    assert partition.matrix[:, 0].tolist() == [n % 7 for n in range(1, 2_300, 2)]
    await facts.update([Row(f"r{n}", None, {"user_id": "u9"}) for n in range(1_200)])
    assert await facts.size("u9") == 1_200
    assert await facts.delete([f"r{n}" for n in range(1_500)]) == 1_500
    assert sum([len(page) async for page in facts.pages(size=300)]) == 800


async def test_twenty_writers_at_once_lose_nothing_and_keep_their_order(facts):
    await facts.partition("u1")
    await asyncio.gather(*(facts.add([row(f"r{n}"), row(f"s{n}")]) for n in range(20)))
    stored = ids((await facts.partition("u1")).rows)
    assert sorted(stored) == sorted([f"{k}{n}" for k in "rs" for n in range(20)])
    assert all(stored.index(f"s{n}") == stored.index(f"r{n}") + 1 for n in range(20))
    assert stored == await whole(facts)


async def test_reads_between_writes_always_see_the_last_one(facts):
    for n in range(10):
        await facts.add([row(f"r{n}")])
        assert await facts.size("u1") == n + 1
    for n in range(10):
        await facts.delete([f"r{n}"])
        assert await facts.size("u1") == 9 - n


async def test_the_same_id_added_by_many_at_once_is_stored_once(facts):
    results = await asyncio.gather(*(facts.add([row("same")]) for _ in range(8)), return_exceptions=True)
    assert sorted(type(r).__name__ for r in results) == ["Duplicate"] * 7 + ["NoneType"]


async def test_drop_removes_and_is_no_error_twice(store, facts, name):
    await facts.add([row("a")])
    await facts.partition("u1")
    await store.drop(name)
    await store.drop(name)
    assert await store.open(name, create=False) is None
    again = await store.open(name)
    assert (await again.partition("u1")).rows == ()


async def test_a_dropped_collection_may_come_back_with_another_dimension(store, facts, name):
    await facts.add([row("a")])
    await store.drop(name)
    again = await store.open(name)
    await again.add([row("a", vector=(1, 0))])
    assert (await again.partition("u1")).matrix.shape == (1, 2)


async def test_a_swap_by_renames_is_followed_by_handles_that_were_open(store, facts, name):
    await facts.add([row("a", document="旧空间")])
    before = await facts.partition("u1")
    rebuilt = await store.open(f"{name}__rebuild")
    await rebuilt.add([row("a", document="新空间", vector=(1, 0))])

    await store.rename(name, f"{name}__old")
    await store.rename(f"{name}__rebuild", name)
    await store.drop(f"{name}__old")

    after = await facts.partition("u1")
    assert after.rows[0].document == "新空间"
    assert after.matrix.shape == (1, 2)
    assert after.source != before.source
    assert name in await store.names()
    assert f"{name}__old" not in await store.names()


async def test_rename_onto_a_taken_name_changes_nothing(store, facts, name):
    await facts.add([row("a")])
    other = await store.open(f"{name}-other")
    with pytest.raises(Duplicate):
        await store.rename(f"{name}-other", name)
    assert await facts.count() == 1
    assert await other.count() == 0
