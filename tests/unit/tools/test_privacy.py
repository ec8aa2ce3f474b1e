"""Design rule 7 at the tools' door: what a tool answers in a group stands in the group's record of the chat."""

from dataclasses import replace

import pytest
from support.services import MEMBER, ZHANG, make

from amrita_plugin_memory.kernel.toolrun import run
from amrita_plugin_memory.tools import SURFACE

SECRET = "密码提示是桂花巷"
TEMPORARY = replace(ZHANG, overheard=True)


@pytest.fixture
async def twins():
    twins = make()
    await twins.facts.remember(ZHANG, scope="user", content=SECRET)
    await twins.memo.replace(ZHANG, f"备忘：{SECRET}")
    return twins


async def call(twins, caller, name, **arguments):
    tool = next(one for one in SURFACE if one.name == name)
    return await run(tool, twins, caller, given=arguments)


@pytest.mark.parametrize("caller", [MEMBER, TEMPORARY])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_memory", {"query": "密码提示"}),
        ("read_memory", {"query": "密码提示", "scope": "user"}),
        ("list_memory", {}),
        ("list_memory", {"scope": "user"}),
        ("read_memo", {}),
    ],
)
async def test_no_tool_tells_a_group_what_is_personal(twins, caller, name, arguments):
    assert "桂花巷" not in await call(twins, caller, name, **arguments)


async def test_the_refusal_says_where_to_ask(twins):
    assert "私聊" in await call(twins, MEMBER, "read_memory", query="密码", scope="user")
    assert "私聊" in await call(twins, TEMPORARY, "list_memory")


async def test_in_a_group_the_group_is_read_and_the_personal_may_still_be_written_and_deleted(twins):
    await call(twins, MEMBER, "write_memory", content="本群周五聚餐", scope="group")
    assert "周五聚餐" in await call(twins, MEMBER, "read_memory", query="聚餐")
    assert "周五聚餐" in await call(twins, MEMBER, "list_memory")
    one = await twins.facts.remember(MEMBER, scope="user", content="我新买了望远镜")
    answer = await call(twins, MEMBER, "delete_memory", id=one.short)
    assert "success" in answer
    assert "望远镜" not in answer


async def test_in_private_all_is_as_before(twins):
    assert "桂花巷" in await call(twins, ZHANG, "read_memory", query="密码提示")
    assert "桂花巷" in await call(twins, ZHANG, "list_memory")
    assert "桂花巷" in await call(twins, ZHANG, "read_memo")
