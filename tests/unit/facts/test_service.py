import asyncio

import pytest
from support.services import ADMIN, LI, MEMBER, ZHANG, make

from amrita_plugin_memory.embedding.fake import FakeEmbedder
from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.kernel.errors import (
    Duplicate,
    EmbeddingUnavailable,
    Forbidden,
    InvalidInput,
    LimitReached,
    NotFound,
    SpaceMismatch,
)
from amrita_plugin_memory.kernel.scope import Caller, UniId
from amrita_plugin_memory.retrieval.fingerprint import PROBE_TEXT


async def contents(facts, caller, scope="user"):
    return [one.fact.content for one in (await facts.list(caller, scope=scope, limit=50)).facts]


async def test_a_fact_is_found_by_its_words_and_by_its_meaning():
    facts = make(embedder=FakeEmbedder(means={"坚果": "花生过敏"})).facts
    await facts.remember(ZHANG, scope="user", content="我喜欢喝乌龙茶")
    stored = await facts.remember(ZHANG, scope="user", content="我对花生过敏", tags="健康", importance="high")
    for question in ("花生", "坚果", "健康"):
        found = (await facts.recall(ZHANG, scope="user", question=question)).found
        assert found[0].fact == stored.fact
        assert found[0].short == stored.short


async def test_facts_remember_where_they_came_from():
    facts = make().facts
    fact = (await facts.remember(MEMBER, scope="group", content="周五发版")).fact
    assert (fact.partition, fact.author, fact.door) == (MEMBER.group.key(), MEMBER.user.key(), "tool")


async def test_nobody_reads_changes_or_deletes_what_belongs_to_another():
    facts = make().facts
    mine = await facts.remember(ZHANG, scope="user", content="我的密语是海棠")
    assert (await facts.recall(LI, scope="user", question="海棠")).found == ()
    assert await contents(facts, LI) == []
    for attempt in (
        facts.amend(LI, mine.fact.id, scope="user", content="x"),
        facts.forget(LI, mine.fact.id, scope="user"),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await contents(facts, ZHANG) == ["我的密语是海棠"]


async def test_accounts_that_begin_alike_do_not_share_facts():
    facts = make().facts
    short, long = Caller(UniId.private(1234)), Caller(UniId.private(12345))
    await facts.remember(long, scope="user", content="住在酒店")
    assert (await facts.recall(short, scope="user", question="酒店")).found == ()
    assert await contents(facts, short) == []


async def test_the_importance_filter_returns_only_that_importance():
    facts = make().facts
    await facts.remember(ZHANG, scope="user", content="茶要热的", importance="low")
    await facts.remember(ZHANG, scope="user", content="茶要乌龙", importance="high")
    found = (await facts.recall(ZHANG, scope="user", question="茶", importance="high")).found
    assert [one.fact.content for one in found] == ["茶要乌龙"]
    with pytest.raises(InvalidInput, match="importance"):
        await facts.recall(ZHANG, scope="user", question="茶", importance="urgent")


async def test_twenty_writes_at_once_never_pass_the_limit():
    facts = make(limit=10).facts
    for i in range(8):
        await facts.remember(ZHANG, scope="user", content=f"旧事{i}")
    results = await asyncio.gather(
        *(facts.remember(ZHANG, scope="user", content=f"新事{i}") for i in range(20)), return_exceptions=True
    )
    assert sum(isinstance(one, LimitReached) for one in results) == 18
    assert len(await contents(facts, ZHANG)) == 10


async def test_the_same_fact_twice_is_refused_with_the_id_of_the_first_even_at_once():
    facts = make().facts
    results = await asyncio.gather(
        *(facts.remember(ZHANG, scope="user", content=text) for text in ("我喜欢茶", " 我喜欢茶 ", "我喜欢茶")),
        return_exceptions=True,
    )
    stored = [one for one in results if not isinstance(one, Exception)]
    refused = [one for one in results if isinstance(one, Duplicate)]
    assert len(stored) == 1
    assert {one.id for one in refused} == {stored[0].short}


async def test_edits_of_different_fields_at_once_are_both_kept():
    facts = make().facts
    one = await facts.remember(ZHANG, scope="user", content="喜欢茶", tags="旧")
    await asyncio.gather(
        facts.amend(ZHANG, one.short, scope="user", content="喜欢咖啡"),
        facts.amend(ZHANG, one.short, scope="user", tags="新"),
    )
    fact = (await facts.list(ZHANG, scope="user")).facts[0].fact
    assert (fact.content, fact.tags, fact.created_at) == ("喜欢咖啡", "新", one.fact.created_at)


async def test_a_changed_fact_is_found_by_its_new_words_and_no_longer_by_its_old():
    twins = make()
    one = await twins.facts.remember(ZHANG, scope="user", content="养了橘猫")
    await twins.facts.remember(ZHANG, scope="user", content="喜欢跑步")
    await twins.facts.amend(ZHANG, one.short, scope="user", content="养了柯基")
    found = (await twins.facts.recall(ZHANG, scope="user", question="柯基")).found
    assert found[0].fact.content == "养了柯基"
    assert "橘猫" not in " ".join(await contents(twins.facts, ZHANG))


async def test_changing_only_tags_asks_no_embedding_service():
    twins = make()
    one = await twins.facts.remember(ZHANG, scope="user", content="喜欢茶")
    twins.embedder.down = True
    await twins.facts.amend(ZHANG, one.short, scope="user", tags="饮食", importance="high")
    assert (await twins.facts.list(ZHANG, scope="user")).facts[0].fact.tags == "饮食"


async def test_group_facts_are_for_the_group_and_only_managers_change_or_delete_them():
    facts = make().facts
    one = await facts.remember(MEMBER, scope="group", content="群规：不刷屏")
    for attempt in (
        facts.amend(MEMBER, one.short, scope="group", content="x"),
        facts.forget(MEMBER, "ffffffff", scope="group"),
    ):
        with pytest.raises(Forbidden):
            await attempt
    assert await contents(facts, ADMIN, "group") == ["群规：不刷屏"]
    assert await contents(facts, Caller(ADMIN.user)) == []
    with pytest.raises(Forbidden, match="私聊"):
        await contents(facts, ADMIN)
    await facts.forget(ADMIN, one.short, scope="group")
    assert await contents(facts, MEMBER, "group") == []
    with pytest.raises(InvalidInput, match="不在群聊"):
        await facts.list(ZHANG, scope="group")


async def test_with_the_embedding_service_down_words_still_answer_and_it_heals():
    twins = make()
    await twins.facts.remember(ZHANG, scope="user", content="我对花生过敏")
    twins.embedder.down = True
    answer = await twins.facts.recall(ZHANG, scope="user", question="花生")
    assert [one.fact.content for one in answer.found] == ["我对花生过敏"]
    assert "字词" in answer.note
    with pytest.raises(EmbeddingUnavailable):
        await twins.facts.remember(ZHANG, scope="user", content="我喜欢茶")
    assert await contents(twins.facts, ZHANG) == ["我对花生过敏"]
    twins.embedder.down = False
    assert (await twins.facts.recall(ZHANG, scope="user", question="花生")).note == ""
    await twins.facts.remember(ZHANG, scope="user", content="我喜欢茶")


@pytest.mark.parametrize("other", [FakeEmbedder(model="another"), FakeEmbedder(model="fake", dimension=32)])
async def test_vectors_of_another_model_are_never_compared_or_mixed(other):
    before = make()
    await before.facts.remember(ZHANG, scope="user", content="我对花生过敏")
    after = make(embedder=other, store=before.store)
    answer = await after.facts.recall(ZHANG, scope="user", question="花生")
    assert [one.fact.content for one in answer.found] == ["我对花生过敏"]
    assert "reindex" in answer.note
    with pytest.raises(SpaceMismatch):
        await after.facts.remember(ZHANG, scope="user", content="新的事")
    assert {call.texts for call in other.calls} <= {(PROBE_TEXT,)}
    assert len(await contents(after.facts, ZHANG)) == 1


async def test_an_empty_collection_is_stamped_with_the_space_of_its_first_fact():
    twins = make()
    await twins.facts.remember(ZHANG, scope="user", content="我喜欢茶")
    metadata = await (await twins.store.open(COLLECTION)).metadata()
    assert (metadata["embed_model"], metadata["embed_dimension"]) == ("fake", 64)


async def test_without_a_model_words_rank_alone_and_strangers_stay_out():
    facts = make(embedder=FakeEmbedder(meaningful=False)).facts
    await facts.remember(ZHANG, scope="user", content="我对花生过敏")
    await facts.remember(ZHANG, scope="user", content="我喜欢跑步")
    answer = await facts.recall(ZHANG, scope="user", question="花生")
    assert [one.fact.content for one in answer.found] == ["我对花生过敏"]


async def test_lists_are_newest_first_and_paged():
    facts = make().facts
    for i in range(12):
        await facts.remember(ZHANG, scope="user", content=f"第{i}件事")
    page = await facts.list(ZHANG, scope="user", limit=5, offset=5)
    assert [one.fact.content for one in page.facts] == [f"第{i}件事" for i in range(6, 1, -1)]
    assert (page.total, page.limit) == (12, 50)


@pytest.mark.parametrize("top_k", [0, -1])
async def test_a_senseless_number_of_results_is_refused(top_k):
    with pytest.raises(InvalidInput, match="top_k"):
        await make().facts.recall(ZHANG, scope="user", question="茶", top_k=top_k)


async def test_a_hanging_embedding_service_keeps_nobody_else_waiting():
    twins = make()
    await twins.facts.remember(ZHANG, scope="user", content="我喜欢茶")
    twins.embedder.hang = True
    stuck = asyncio.create_task(twins.facts.remember(ZHANG, scope="user", content="新的事"))
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        assert await contents(twins.facts, ZHANG) == ["我喜欢茶"]
    stuck.cancel()
    await asyncio.gather(stuck, return_exceptions=True)
