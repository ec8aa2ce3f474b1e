import asyncio
from contextlib import asynccontextmanager

import numpy as np
import pytest
from support.upkeep import Killed, Light, Mortal, contents, fact, fill, place, whole_space

from amrita_plugin_memory.facts import COLLECTION, Facts
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable, Locked, SpaceMismatch
from amrita_plugin_memory.kernel.scope import Caller, UniId
from amrita_plugin_memory.ops.jobs.reindex import heal, reindex
from amrita_plugin_memory.ops.upkeep.names import BUILDING, GENERATION, JOB, PENDING, STATE, aside_of, rebuild_of
from amrita_plugin_memory.ops.upkeep.rebuild import announce
from amrita_plugin_memory.ops.upkeep.recover import recover
from amrita_plugin_memory.retrieval import GatedStore, Recall, SpaceGuard
from amrita_plugin_memory.vectordb import MemoryStore, Row

OLD, NEW = Light(model="old", dimension=32), Light(model="new", dimension=48)
OLD_VECTOR = np.ones(32, dtype=np.float32)


def only_main(names):
    return {name for name in names if name.startswith(COLLECTION)} == {COLLECTION}


@pytest.mark.parametrize("new", [NEW, Light(model="new", dimension=32)])
async def test_a_reindex_keeps_every_row_in_order_and_embeds_all_with_the_new_model(tmp_path, new):
    at = place(tmp_path, embedder=new)
    await fill(at.store, [fact(i) for i in range(1300)], OLD)
    collection = await at.store.open(COLLECTION)
    await collection.annotate({"key_schema_version": 2, "owner_note": "别删"})
    before = await contents(at.store)
    done = await reindex(at, COLLECTION)
    after = await contents(at.store)
    assert [(i, d, m) for i, (d, m, _) in before.items()] == [(i, d, m) for i, (d, m, _) in after.items()]
    assert await whole_space(at.store, new)
    assert (done.rows, done.embedded, done.without) == (1300, 1300, 0)
    assert only_main(await at.store.names())
    metadata = await collection.metadata()
    assert metadata["key_schema_version"] == 2
    assert metadata["owner_note"] == "别删"
    assert metadata[GENERATION] == 1
    assert await SpaceGuard(new).verdict(collection) == "same"


async def test_batches_have_the_configured_size(tmp_path):
    new = Light(model="new")
    at = place(tmp_path, embedder=new, reembed_batch_size=20)
    await fill(at.store, [fact(i) for i in range(90)], OLD)
    await reindex(at, COLLECTION)
    assert max(len(call.texts) for call in new.calls) == 20


async def test_progress_tells_rate_and_remaining_time(tmp_path):
    told = []
    at = place(tmp_path, embedder=Light(model="new"), report=told.append)
    await fill(at.store, [fact(i) for i in range(1200)], OLD)
    await reindex(at, COLLECTION)
    assert (told[0].done, told[-1].done, told[-1].total) == (0, 1200, 1200)
    assert told[1].rate > 0
    assert told[1].remaining > 0


class Busy(Light):
    """Lets others write while it embeds, as a real service does."""

    meanwhile = None

    async def embed(self, texts, *, purpose, deadline=None):
        if self.meanwhile is not None:
            await self.meanwhile()
        return await Light.embed(self, texts, purpose=purpose, deadline=deadline)


async def test_what_is_written_changed_and_deleted_during_a_reindex_is_in_the_result(tmp_path):
    new = Busy(model="new", dimension=48)
    at = place(tmp_path, embedder=new)
    collection = await fill(at.store, [fact(i) for i in range(5000)], OLD)
    guard, turns, numbers = SpaceGuard(Light(model="new", dimension=48)), 0, iter(range(100_000, 200_000))
    deleted, changed, written = set(), {}, {}

    async def meanwhile():
        nonlocal turns
        turns += 1
        if turns % 3:
            return
        row = fact(next(numbers))
        await collection.add([Row(row.id, row.document, row.metadata, await guard.passage(collection, row.document))])
        written[row.id] = row.document
        gone, edited = fact(turns * 37 % 5000).id, fact(turns * 53 % 5000)
        await collection.delete([gone])
        deleted.add(gone)
        if edited.id not in deleted:
            text = f"改过的 {turns}"
            vector = await guard.passage(collection, text)
            await collection.update([Row(edited.id, text, edited.metadata, vector)])
            changed[edited.id] = text

    new.meanwhile = meanwhile
    await reindex(at, COLLECTION)
    new.meanwhile = None
    after = await contents(at.store)
    assert len(written) > 20
    assert set(after) == ({fact(i).id for i in range(5000)} | set(written)) - deleted
    assert all(after[i][0] == text for i, text in changed.items() if i not in deleted)
    assert await whole_space(at.store, Light(model="new", dimension=48))


class LastMoment(GatedStore):
    """Somebody writes after the long passes and before the swap has the collection for itself."""

    last = None

    @asynccontextmanager
    async def hold(self, name):
        if self.last is not None:
            await self.last()
        async with GatedStore.hold(self, name):
            yield


async def test_what_is_written_and_deleted_right_before_the_swap_is_in_the_result(tmp_path):
    store = LastMoment(MemoryStore())
    at = place(tmp_path, store=store, embedder=NEW)
    collection = await fill(store, [fact(i) for i in range(10)], OLD)
    row = fact(99)

    async def last():
        if rebuild_of(COLLECTION) in await store.names() and not await collection.get([row.id]):
            vector = await SpaceGuard(NEW).passage(collection, row.document)
            await collection.add([Row(row.id, row.document, row.metadata, vector)])
            await collection.delete([fact(3).id])

    store.last = last
    await reindex(at, COLLECTION)
    assert set(await contents(store)) == {fact(i).id for i in (*range(10), 99)} - {fact(3).id}
    assert await whole_space(store, NEW)


async def test_a_write_that_meets_the_swap_waits_and_lands_in_the_new_collection():
    store = GatedStore(MemoryStore())
    collection = await fill(store, [fact(1)], NEW)
    async with store.hold(COLLECTION):
        write = asyncio.create_task(fill(store, [fact(2)], NEW))
        for _ in range(20):
            await asyncio.sleep(0)
        assert await collection.count() == 1
        await store.rename(COLLECTION, "before")
        await store.open(COLLECTION)
    await write
    assert set(await contents(store)) == {fact(2).id}


@pytest.mark.parametrize("dimension", [32, 48])
async def test_a_fact_that_waited_for_the_swap_gets_a_vector_of_the_new_model(dimension):
    new = Light(model="new", dimension=dimension)
    store = GatedStore(MemoryStore())
    main = await fill(store, [fact(i) for i in range(10)], OLD)
    await announce(main, new)
    await fill(store, [fact(i) for i in range(10)], new, name=rebuild_of(COLLECTION))
    facts = Facts(store=store, embedder=new, recall=Recall(new), clock=ManualClock(), limit=lambda: 50)
    caller = Caller(UniId.private(1))
    async with store.hold(COLLECTION):
        waiting = [
            asyncio.create_task(facts.remember(caller, scope="user", content="换模型时说的话")),
            asyncio.create_task(facts.amend(caller, fact(3).id, scope="user", content="换模型时改的话")),
        ]
        for _ in range(50):
            await asyncio.sleep(0)
        await store.swap(COLLECTION, rebuild_of(COLLECTION), aside=aside_of(COLLECTION))
    await asyncio.gather(*waiting)
    texts = {document for document, _, _ in (await contents(store)).values()}
    assert {"换模型时说的话", "换模型时改的话"} <= texts
    assert len(texts) == 11
    assert await whole_space(store, new)


async def test_what_another_program_does_to_a_server_meanwhile_is_in_the_result(tmp_path):
    """Its writes pass another gate; the number of rows is the same before and after, so that counting tells nothing."""
    inner, done = MemoryStore(), []

    class Meddling(Light):
        async def embed(self, texts, **options):
            if not done and "第 9 件要记住的事" in texts:
                done.append(True)
                other = await GatedStore(inner).open(COLLECTION)
                await other.update([Row(fact(0).id, "我已经搬到成都了", fact(0).metadata, OLD_VECTOR)])
                await other.delete([fact(1).id])
                await other.add([Row(fact(99).id, "后来说的", fact(99).metadata, OLD_VECTOR)])
            return await super().embed(texts, **options)

    new = Meddling(model="new", dimension=48)
    at = place(tmp_path, store=GatedStore(inner), embedder=new, vector_db_type="remote")
    await fill(at.store, [fact(i) for i in range(10)], OLD)
    await reindex(at, COLLECTION)
    assert done
    found = await contents(at.store)
    assert found[fact(0).id][0] == "我已经搬到成都了"
    assert fact(1).id not in found
    assert found[fact(99).id][0] == "后来说的"
    assert await whole_space(at.store, new)


async def test_two_reindexes_at_once_are_refused(tmp_path):
    new = Busy(model="new")
    at = place(tmp_path, embedder=new)
    await fill(at.store, [fact(i) for i in range(10)], OLD)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def meanwhile():
        begun.set()
        await go_on.wait()

    first = asyncio.create_task(reindex(at, COLLECTION))
    new.meanwhile = None
    await asyncio.sleep(0)
    new.meanwhile = meanwhile
    await begun.wait()
    with pytest.raises(Locked), at.store.listen(COLLECTION):
        pass
    go_on.set()
    assert (await first).rows == 10


async def test_an_outage_is_waited_for_and_a_long_one_leaves_the_old_whole_and_the_work_resumable(tmp_path):
    new = Light(model="new", dimension=48)
    at = place(tmp_path, embedder=new)
    await fill(at.store, [fact(i) for i in range(1200)], OLD)
    before = await contents(at.store)
    new.fail_after = 11  # some pages in
    with pytest.raises(EmbeddingUnavailable):
        await reindex(at, COLLECTION)
    assert {i: d for i, (d, _, _) in before.items()} == {i: d for i, (d, _, _) in (await contents(at.store)).items()}
    assert await whole_space(at.store, OLD)
    new.fail_after = None
    done = await reindex(at, COLLECTION)
    assert done.resumed >= 500
    assert done.embedded + done.resumed == 1200
    assert await whole_space(at.store, new)


async def test_vectors_that_were_lost_from_what_was_built_are_made_again(tmp_path):
    at = place(tmp_path, embedder=NEW)
    await fill(at.store, [fact(i) for i in range(60)], OLD)
    await reindex(at, COLLECTION)  # what an earlier run built, before it was swapped and before its index was torn
    await at.store.rename(COLLECTION, rebuild_of(COLLECTION))
    built = await at.store.open(rebuild_of(COLLECTION))
    lost = await built.get([fact(i).id for i in range(20)])
    await built.update([Row(row.id, row.document, row.metadata, np.zeros(48, dtype=np.float32)) for row in lost])
    await built.annotate({PENDING: True, STATE: BUILDING, JOB: "reindex"})
    await fill(at.store, [fact(i) for i in range(60)], OLD)
    done = await reindex(at, COLLECTION)
    assert (done.embedded, done.resumed) == (20, 40)
    assert await whole_space(at.store, NEW)


async def test_what_was_built_for_a_third_model_is_not_resumed(tmp_path):
    third = Light(model="third", dimension=48, fail_after=11)
    store = GatedStore(MemoryStore())
    await fill(store, [fact(i) for i in range(1200)], OLD)
    with pytest.raises(EmbeddingUnavailable):
        await reindex(place(tmp_path, store=store, embedder=third), COLLECTION)
    assert (await reindex(place(tmp_path, store=store, embedder=NEW), COLLECTION)).resumed == 0
    assert await whole_space(store, NEW)


class Picky(Light):
    async def embed(self, texts, *, purpose, deadline=None):
        if any("毒" in text for text in texts):
            raise EmbeddingUnavailable("嵌入服务拒绝了请求")
        return await Light.embed(self, texts, purpose=purpose, deadline=deadline)


async def test_a_text_that_no_service_takes_stops_nothing_and_loses_nothing(tmp_path):
    new = Picky(model="new")
    at = place(tmp_path, embedder=new)
    rows = [fact(i, text="毒" if i == 77 else "") for i in range(200)]
    rows.append(Row("blank", "  ", {"user_id": "u"}))
    await fill_raw(at.store, rows)
    done = await reindex(at, COLLECTION)
    assert (done.rows, done.without) == (201, 2)
    after = await contents(at.store)
    assert len(after) == 201
    assert not after[fact(77).id][2].any()
    assert (await (await at.store.open(COLLECTION)).metadata())[PENDING]


async def fill_raw(store, rows):
    collection = await store.open(COLLECTION)
    await collection.add([Row(r.id, r.document, r.metadata, np.ones(32, np.float32)) for r in rows])
    return collection


async def test_rows_that_wait_for_a_vector_get_it_later(tmp_path):
    at = place(tmp_path, embedder=NEW)
    await fill(at.store, [fact(i) for i in range(5)], NEW)
    collection = await at.store.open(COLLECTION)
    waiting = fact(9)
    await collection.add([Row(waiting.id, waiting.document, waiting.metadata, np.zeros(48, np.float32))])
    await collection.annotate({PENDING: True})
    assert await heal(at, COLLECTION) == 1
    assert await whole_space(at.store, NEW)
    assert PENDING not in await collection.metadata()


async def test_an_edit_made_while_vectors_are_brought_back_is_kept(tmp_path):
    class Editing(Light):
        async def embed(self, texts, **options):
            vectors = await super().embed(texts, **options)
            if "第 1 件要记住的事" in texts:
                edit.append(asyncio.create_task(main.update([Row(fact(1).id, "改过的内容", fact(1).metadata)])))
            return vectors

    edit = []
    at = place(tmp_path, embedder=Editing(model="old", dimension=32))
    main = await fill(at.store, [fact(i) for i in range(3)], OLD)
    await main.update([Row(fact(i).id, None, fact(i).metadata, np.zeros(32, np.float32)) for i in range(3)])
    await main.annotate({PENDING: True})
    await heal(at, COLLECTION)
    await edit[0]
    assert (await contents(at.store))[fact(1).id][0] == "改过的内容"


async def test_a_fact_stored_for_a_rebuild_that_never_ended_gets_its_vector_when_the_old_model_is_back(tmp_path):
    store = GatedStore(MemoryStore())
    main = await fill(store, [fact(i) for i in range(3)], OLD)
    await announce(main, NEW)
    facts = Facts(store=store, embedder=NEW, recall=Recall(NEW), clock=ManualClock(), limit=lambda: 50)
    await main.annotate({PENDING: None})
    await facts.remember(Caller(UniId.private(1)), scope="user", content="重建没有做完时说的")
    assert await heal(place(tmp_path, store=store, embedder=OLD), COLLECTION) == 1
    assert await whole_space(store, OLD)
    with pytest.raises(SpaceMismatch):  # nobody rebuilds any more, so nothing is promised to the other model
        await facts.remember(Caller(UniId.private(1)), scope="user", content="后来说的")


async def test_killed_at_any_change_of_the_store_the_next_run_finds_every_fact_once(tmp_path):
    """Every single changing call of a reindex is a place to die, before it and right after it."""
    rows = [fact(i) for i in range(501)]
    new = Light(model="new", dimension=48)
    deaths = 0
    for after in range(1, 40):
        for late in (False, True):
            inner = MemoryStore()
            await fill(inner, rows, OLD)
            store = Mortal(inner, after=after, late=late)
            try:
                await reindex(place(tmp_path, store=GatedStore(store), embedder=new), COLLECTION)
            except Killed:
                deaths += 1
            else:
                assert deaths >= 20
                return
            next_run = GatedStore(inner)
            await recover(next_run, COLLECTION)
            assert set(await contents(inner)) == {row.id for row in rows}
            assert await whole_space(inner, OLD) or await whole_space(inner, new)
            await reindex(place(tmp_path, store=next_run, embedder=new), COLLECTION)
            assert set(await contents(inner)) == {row.id for row in rows}
            assert await whole_space(inner, new)
            assert only_main(await inner.names())


async def test_a_write_after_a_crash_between_the_renames_is_kept_with_all_the_rest(tmp_path):
    inner = MemoryStore()
    await fill(inner, [fact(i) for i in range(10)], OLD)
    await inner.rename(COLLECTION, aside_of(COLLECTION))
    await fill(inner, [fact(99)], Light(model="third", dimension=16))
    await recover(GatedStore(inner), COLLECTION)
    after = await contents(inner)
    assert set(after) == {fact(i).id for i in (*range(10), 99)}
    assert not after[fact(99).id][2].any()


async def test_the_leftover_of_the_published_plugin_is_adopted_when_the_main_collection_is_gone_or_empty():
    """F7: killed between delete and rename, the published plugin then makes an empty main collection."""
    for main in (None, "empty"):
        inner = MemoryStore()
        await fill(inner, [fact(i) for i in range(10)], OLD, name=rebuild_of(COLLECTION), claim=False)
        if main:
            await (await inner.open(COLLECTION)).annotate({"embed_fingerprint": "0" * 64, "key_schema_version": 2})
        said = await recover(GatedStore(inner), COLLECTION)
        assert len(said) == 1
        assert set(await contents(inner)) == {fact(i).id for i in range(10)}
        assert only_main(await inner.names())


async def test_the_leftover_beside_new_memories_is_merged_and_a_half_made_copy_is_not():
    inner = MemoryStore()
    await fill(inner, [fact(i) for i in range(10)], OLD, name=rebuild_of(COLLECTION), claim=False)
    await fill(inner, [fact(99)], OLD)
    await recover(GatedStore(inner), COLLECTION)
    assert set(await contents(inner)) == {fact(i).id for i in (*range(10), 99)}

    inner = MemoryStore()
    await fill(inner, [fact(i) for i in range(10)], OLD)
    await fill(inner, [fact(i) for i in range(4)], OLD, name=rebuild_of(COLLECTION), claim=False)
    await recover(GatedStore(inner), COLLECTION)
    assert set(await contents(inner)) == {fact(i).id for i in range(10)}
    assert only_main(await inner.names())


async def test_recovery_of_a_sound_store_says_and_changes_nothing():
    inner = MemoryStore()
    await fill(inner, [fact(1)], OLD)
    assert await recover(GatedStore(Mortal(inner, after=1, late=False)), COLLECTION) == []


async def test_knowledge_is_rebuilt_from_its_summaries(tmp_path):
    (tmp_path / "knowledge_index.json").write_text('[{"kid": "k1", "summary": "蓝牙配对的步骤"}]', "utf-8")
    at = place(tmp_path, embedder=NEW)
    collection = await at.store.open(at.knowledge)
    await collection.add([Row("k1", None, {"kid": "k1"}, np.ones(32, np.float32))])
    await reindex(at, at.knowledge)
    vector = (await contents(at.store, at.knowledge))["k1"][2]
    expected = (await NEW.embed(["蓝牙配对的步骤"], purpose="passage"))[0]
    assert np.allclose(vector, expected, atol=1e-5)
