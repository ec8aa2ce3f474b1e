import pytest
from support.services import ADMIN, MEMBER, ZHANG, make

from amrita_plugin_memory.commands import Commands


@pytest.fixture
def twins():
    return make()


@pytest.fixture
def commands(twins):
    return Commands(facts=twins.facts, memo=twins.memo)


async def fill(twins, count, caller=ZHANG, scope="user"):
    return [
        await twins.facts.remember(caller, scope=scope, content=f"喜欢第{i}种茶", tags="饮食", importance="high")
        for i in range(count)
    ]


async def test_a_list_has_numbered_lines_short_ids_and_pages(twins, commands):
    stored = await fill(twins, 10)
    text = await commands.answer(ZHANG, "user list")
    lines = text.split("\n")
    assert lines[0] == "📒 个人记忆列表（共 10 条，上限 50，第 1/2 页）"
    assert lines[1] == f"1. ★喜欢第9种茶 #饮食 01-01 [{stored[9].short}]"
    assert lines[-1] == "下一页：/memory user list 2"
    assert stored[0].fact.id not in text
    assert (await commands.answer(ZHANG, "list 2")).split("\n")[1].startswith("9. ★喜欢第1种茶")
    assert await commands.answer(ZHANG, "list 9") == "个人记忆只有 2 页，没有第 9 页"


async def test_a_search_shows_relevance_as_dots_and_never_a_distance(twins, commands):
    await fill(twins, 3)
    text = await commands.answer(ZHANG, "user search 第2种茶")
    assert text.startswith("🔍 个人记忆搜索「第2种茶」")
    assert "第2种茶" in text.split("\n")[1]
    assert "●" in text
    assert "距离" not in text


async def test_deleting_names_what_was_deleted_and_what_was_not(twins, commands):
    one, two, _ = await fill(twins, 3)
    text = await commands.answer(ZHANG, f"user delete {one.short} ffffffff {two.short[:6]}")
    assert text.split("\n") == [
        f"已删除个人记忆 #{one.short}：喜欢第0种茶",
        f"已删除个人记忆 #{two.short}：喜欢第1种茶",
        "没有编号为 ffffffff 的记忆，请用列表中的编号",
    ]


async def test_group_memory_is_deleted_only_by_managers(twins, commands):
    (one,) = await fill(twins, 1, MEMBER, "group")
    assert (
        await commands.answer(MEMBER, f"group delete {one.short}") == "无权修改或删除群共享记忆，只有群主和管理员可以"
    )
    assert await commands.answer(ADMIN, f"group delete {one.short}") == f"已删除群共享记忆 #{one.short}：喜欢第0种茶"


@pytest.mark.parametrize("text", ["user list", "list", "search 茶", "user search 茶", "user delete abcd"])
async def test_personal_memory_is_never_printed_into_a_group(twins, commands, text):
    await fill(twins, 2, ZHANG)
    answer = await commands.answer(MEMBER, text)
    assert answer == "个人记忆不在群里显示，请私聊我发送 /memory"


async def test_the_status_card_shows_the_chats_own_memory(twins, commands):
    await fill(twins, 4)
    await twins.memo.replace(ZHANG, "姓名：张三")
    text = await commands.answer(ZHANG, "")
    assert text.split("\n")[0] == "🧠 个人记忆 4/50 条 · 备忘录 5/1000 字"
    assert "用法" in text
    group = await commands.answer(MEMBER, "")
    assert "群共享记忆 0/50" in group
    assert "第" not in group.split("\n")[0]


async def test_the_memo_is_shown_where_it_belongs(twins, commands):
    await twins.memo.replace(ZHANG, "姓名：张三")
    assert "姓名：张三" in await commands.answer(ZHANG, "memo")
    assert await commands.answer(MEMBER, "memo") == "本群的备忘录是空的（上限 1000 字）"


async def test_group_commands_in_a_private_chat_get_one_sentence(commands):
    assert await commands.answer(ZHANG, "group list") == "当前不在群聊中，不能使用群共享记忆"
    assert await commands.answer(ZHANG, "nonsense") == "不认识「nonsense」，发送 /memory help 查看用法"


async def test_an_empty_memory_is_said_plainly(commands):
    assert await commands.answer(ZHANG, "list") == "暂无个人记忆"
    assert await commands.answer(ZHANG, "search 茶") == "🔍 个人记忆搜索「茶」：没有找到"


async def test_with_the_service_down_a_search_says_that_only_words_were_used(twins, commands):
    await fill(twins, 2)
    twins.embedder.down = True
    text = await commands.answer(ZHANG, "search 第1种")
    assert "只按字词" in text.split("\n")[-1]
