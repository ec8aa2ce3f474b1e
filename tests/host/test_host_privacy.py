import pytest
import pytest_asyncio
from support.host import call

from amrita_plugin_memory.demo.onebot import Place

pytestmark = pytest.mark.asyncio(loop_scope="session")

PERSON = Place(30001)
IN_GROUP = Place(30001, 40001)
OWNER = Place(30002, 40001, role="owner")
TEMPORARY = Place(30001, 40001, temporary=True)
OTHER_GROUP = Place(30001, 4000, role="owner")


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def _memos(bot):
    assert (await call(bot, PERSON, "update_memo", content="暗号是蓝鲸"))["status"] == "success"
    assert (await call(bot, OWNER, "update_memo", content="群规是早睡"))["status"] == "success"
    assert (await call(bot, PERSON, "write_memory", content="家在桂花巷", scope="user"))["status"] == "success"


def memos(turn):
    assert turn.chat_requests
    return {request.reading.memo for request in turn.chat_requests}


async def test_a_private_chat_has_the_personal_memo_in_every_request(bot):
    assert memos(await bot.say(PERSON, "你好")) == {"暗号是蓝鲸"}


async def test_a_group_has_its_own_memo_and_nothing_of_the_person(bot):
    turn = await bot.say(IN_GROUP, "你好")
    assert memos(turn) == {"群规是早睡"}
    assert not [r for r in turn.requests if "蓝鲸" in r.everything or "桂花巷" in r.everything]


async def test_another_group_has_neither(bot):
    turn = await bot.say(OTHER_GROUP, "你好")
    assert memos(turn) == {None}
    assert not [r for r in turn.requests if "蓝鲸" in r.everything or "早睡" in r.everything]


async def test_a_private_list_asked_for_in_a_group_is_not_printed_there(bot):
    for command in ("/memory user list", "/memory user search 家", "/memory list", "/记忆 列表", "/memory memo"):
        turn = await bot.say(IN_GROUP, command)
        assert turn.reply, command
        assert "桂花巷" not in turn.reply, command
        assert "蓝鲸" not in turn.reply, command


async def test_group_memory_cannot_be_asked_for_in_private(bot):
    assert (await call(bot, PERSON, "read_memory", query="群规", scope="group"))["status"] == "error"


async def test_a_member_cannot_change_the_group_through_a_tool_and_the_owner_can(bot):
    written = await call(bot, IN_GROUP, "write_memory", content="群宠是柴犬", scope="group")
    assert written["status"] == "success"
    refused = await call(bot, IN_GROUP, "delete_memory", id=written["memory_id"], scope="group")
    assert (refused["status"], "无权" in refused["message"]) == ("error", True)
    assert (await call(bot, IN_GROUP, "update_memory", id=written["memory_id"], scope="group", content="猫"))[
        "status"
    ] == "error"
    assert (await call(bot, OWNER, "delete_memory", id=written["memory_id"], scope="group"))["status"] == "success"


# Last: the host itself files a temporary session's chat under the group.
async def test_a_temporary_session_out_of_a_group_is_private(bot):
    turn = await bot.say(TEMPORARY, "你好")
    assert memos(turn) == {"暗号是蓝鲸"}
    assert (await call(bot, TEMPORARY, "read_memory", query="群规", scope="group"))["status"] == "error"
    assert "桂花巷" in ((await bot.say(TEMPORARY, "/memory user list")).reply or "")


async def test_what_a_tool_reads_in_a_group_never_reaches_the_next_speaker(bot):
    for arguments in ({"query": "家在哪"}, {"query": "家在哪", "scope": "user"}):
        assert "桂花巷" not in str(await call(bot, IN_GROUP, "read_memory", **arguments))
        assert "桂花巷" not in str(await call(bot, TEMPORARY, "read_memory", **arguments))
    for place in (IN_GROUP, TEMPORARY):
        assert "桂花巷" not in str(await call(bot, place, "list_memory", limit=20))
    assert "蓝鲸" not in str(await call(bot, TEMPORARY, "read_memo"))
    turn = await bot.say(OWNER, "你好")
    assert not [r for r in turn.requests if "蓝鲸" in r.everything or "桂花巷" in r.everything]


async def test_words_that_only_begin_like_the_command_are_no_command(bot):
    patience, bot.reply_seconds = bot.reply_seconds, 5  # the host answers nothing to a command that is none
    turn = await bot.say(PERSON, "/记忆力真差")
    bot.reply_seconds = patience
    assert "不认识" not in (turn.reply or "")
