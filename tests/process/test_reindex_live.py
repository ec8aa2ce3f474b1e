"""Facts that a bot writes, changes and deletes while 5,000 of them are embedded anew, on real Chroma."""

import asyncio

import pytest
from support.upkeep import Light, contents, fact, fill, place, whole_space

from amrita_plugin_memory.facts import COLLECTION, Facts
from amrita_plugin_memory.kernel.clock import SystemClock
from amrita_plugin_memory.kernel.scope import Caller, UniId
from amrita_plugin_memory.ops.jobs.reindex import reindex
from amrita_plugin_memory.retrieval import GatedStore, Recall
from amrita_plugin_memory.retrieval.fingerprint import REBUILDING
from amrita_plugin_memory.settings import EnvSettings
from amrita_plugin_memory.vectordb import open_store

ROWS = 5_000
OLD, NEW = Light(model="old", dimension=16), Light(model="new", dimension=24)
CALLER = Caller(UniId.private(7))


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_what_is_written_changed_and_deleted_during_a_reindex_of_5000_facts_is_right_afterwards(tmp_path):
    inner = await open_store(EnvSettings(vector_db_timeout=60), directory=tmp_path / "vector_db.chroma")
    store = GatedStore(inner)
    await fill(store, [fact(n, key=f"QQPlatform_Private_{7 + n % 50}") for n in range(ROWS)], OLD)
    facts = Facts(store=store, embedder=NEW, recall=Recall(NEW), clock=SystemClock(), limit=lambda: 10_000)
    job = asyncio.create_task(reindex(place(tmp_path, store=store, embedder=NEW), COLLECTION))
    written, changed, deleted, answers = {}, {}, set(), 0
    number = 0
    while COLLECTION in await store.names() and not (await (await store.open(COLLECTION)).metadata()).get(REBUILDING):
        await asyncio.sleep(0)
    while not job.done():
        number += 1
        listed = await facts.remember(CALLER, scope="user", content=f"重建期间的第 {number} 件事")
        written[listed.fact.id] = listed.fact.content
        if number < 90:  # of the 100 that this user had before
            old, other = fact(50 * number).id, fact(50 * (number + 5)).id
            await facts.forget(CALLER, old, scope="user")
            deleted.add(old)
            await facts.amend(CALLER, other, scope="user", content=f"重建期间改成的第 {number} 句")
            changed[other] = f"重建期间改成的第 {number} 句"
        if number % 3 == 0:
            gone = next(iter(written))
            await facts.forget(CALLER, gone, scope="user")
            deleted.add(gone)
            written.pop(gone)
        found = await facts.recall(CALLER, scope="user", question=f"重建期间的第 {number} 件事")
        answers += any(one.fact.id == listed.fact.id for one in found.found)
        await asyncio.sleep(0.05)
    done = await job
    assert number > 10
    assert answers == number, "a fact could not be found at once while the index was being rebuilt"
    after = await contents(store)
    expected = {fact(n).id for n in range(ROWS)} - deleted | set(written)
    assert set(after) == expected
    assert done.rows >= ROWS - len(deleted)
    texts = {one: content for one, content in {**changed, **written}.items() if one not in deleted}
    assert {one: after[one][0] for one in texts} == texts
    assert await whole_space(store, NEW)
    assert {name for name in await store.names() if name.startswith(COLLECTION)} == {COLLECTION}
    await store.aclose()
