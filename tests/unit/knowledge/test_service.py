import pytest

from amrita_plugin_memory.embedding.fake import FakeEmbedder
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import InvalidInput, NotFound
from amrita_plugin_memory.knowledge import Entry, Knowledge, MemoryEntryFiles, Repaired
from amrita_plugin_memory.retrieval import Recall
from amrita_plugin_memory.vectordb import MemoryStore, Row

NAME = "amrita_global_knowledge"


def make(embedder=None, files=None, store=None):
    embedder = embedder or FakeEmbedder()
    return Knowledge(
        files=files or MemoryEntryFiles(), store=store or MemoryStore(), embedder=embedder, recall=Recall(embedder),
        clock=ManualClock(), collection=NAME, max_chars=lambda: 1000,
    )  # fmt: skip


async def ids(store):
    return sorted([row.id async for page in (await store.open(NAME)).pages() for row in page])


async def test_an_entry_is_created_found_changed_and_deleted():
    store = MemoryStore()
    base = make(store=store)
    entry = await base.create("发版流程", "每周五怎样发版", "先打标签\n再发布")
    await base.create("值班表", "谁在周末值班", "轮流")
    (first, relevance), *_ = await base.search("怎样发版")
    assert first == entry
    assert 0 < relevance <= 1
    old, new = await base.update(entry.kid, body="只打标签")
    assert (old.body, new.body) == ("先打标签\n再发布", "只打标签")
    await base.delete(entry.kid)
    assert [one.title for one in await base.list()] == ["值班表"]
    assert entry.kid not in await ids(store)
    with pytest.raises(NotFound):
        await base.read(entry.kid)


async def test_a_day_that_is_asked_for_prefers_the_entry_that_speaks_of_it():
    base = make()
    await base.create("周会记录甲", "团队周会的记录", "2025-11-03 讨论了预算")
    await base.create("周会记录乙", "团队周会的记录", "2025-12-08 讨论了预算")
    for day, title in {"2025年11月3日": "周会记录甲", "2025年12月8日": "周会记录乙"}.items():
        (first, _), *_ = await base.search(f"{day}的周会记录")
        assert first.title == title


async def test_the_same_title_twice_and_an_empty_change_are_refused():
    base = make()
    entry = await base.create("甲", "摘要", "正文")
    with pytest.raises(InvalidInput, match=entry.kid):
        await base.create("甲", "别的", "别的")
    with pytest.raises(InvalidInput):
        await base.update(entry.kid)


async def test_with_the_embedding_service_down_entries_are_kept_found_by_words_and_get_their_vectors_later():
    embedder, store = FakeEmbedder(), MemoryStore()
    base = make(embedder, store=store)
    embedder.down = True
    entry = await base.create("花生过敏怎么办", "急救", "叫医生")
    assert [one.kid for one, _ in await base.search("花生")] == [entry.kid]
    assert (await base.repair()) == Repaired(0, 0, 1)
    embedder.down = False
    assert (await base.repair()) == Repaired(1, 0, 0)
    assert await ids(store) == [entry.kid]


async def test_a_repair_embeds_what_lacks_or_has_changed_and_removes_what_has_no_file():
    files, store = MemoryEntryFiles(), MemoryStore()
    base = make(files=files, store=store)
    kept = await base.create("甲", "摘要", "正文")
    gone = await base.create("乙", "摘要", "正文")
    del files.texts[gone.kid]
    files.texts["feedbeef"] = "# 丙\n别的程序写的\n---\n正文\n"
    files.texts[kept.kid] = files.texts[kept.kid].replace("正文", "改过")
    assert await base.repair() == Repaired(2, 1, 0)
    assert await base.repair() == Repaired(0, 0, 0)
    assert await ids(store) == sorted([kept.kid, "feedbeef"])


async def test_rows_of_the_published_plugin_are_brought_in_step():
    files, store, embedder = MemoryEntryFiles({"ab12cd34": "# 甲\n摘要\n---\n正文\n"}), MemoryStore(), FakeEmbedder()
    vector = (await embedder.embed(["摘要"], purpose="passage"))[0]
    await (await store.open(NAME)).add([Row("ab12cd34", None, {"kid": "ab12cd34"}, vector)])
    base = make(embedder, files, store)
    done = await base.repair()
    assert done.embedded + done.missing == 1
    assert [one.kid for one, _ in await base.search("甲")] == ["ab12cd34"]


async def test_an_entry_is_put_back_under_its_own_id():
    base = make()
    entry = await base.create("甲", "摘要", "正文")
    await base.delete(entry.kid)
    await base.put_back(entry)
    assert await base.read(entry.kid) == Entry(entry.kid, "甲", "摘要", "正文")
