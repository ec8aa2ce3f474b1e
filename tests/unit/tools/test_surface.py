import json

import pytest
from support.services import ADMIN, MEMBER, ZHANG, make

from amrita_plugin_memory.kernel.toolrun import run
from amrita_plugin_memory.tools import SURFACE

TOOLS = {tool.name: tool for tool in SURFACE}


async def call(twins, name, caller=ZHANG, **arguments):
    return json.loads(await run(TOOLS[name], twins, caller, given=arguments))


def test_the_tools_and_parameters_are_those_of_the_specification():
    assert {name: list(tool.parameters["properties"]) for name, tool in TOOLS.items()} == {
        "write_memory": ["content", "tags", "importance", "scope"],
        "read_memory": ["query", "top_k", "importance", "scope"],
        "update_memory": ["id", "scope", "content", "tags", "importance"],
        "delete_memory": ["id", "scope"],
        "list_memory": ["limit", "offset", "scope"],
        "read_memo": [],
        "append_memo": ["content"],
        "update_memo": ["content"],
    }


def test_schemas_are_plain_and_described():
    for tool in SURFACE:
        assert tool.description
        for schema in tool.parameters["properties"].values():
            assert schema["description"]
            assert schema["type"] in ("string", "integer")
            assert not {"title", "anyOf", "$ref"} & schema.keys()
    assert TOOLS["write_memory"].parameters["properties"]["importance"]["enum"] == ["low", "medium", "high"]
    assert TOOLS["read_memory"].parameters["required"] == ["query"]


async def test_a_written_fact_is_read_changed_listed_and_deleted():
    twins = make()
    written = await call(twins, "write_memory", content="我喜欢喝乌龙茶", tags="饮食", importance="high", scope="user")
    assert written["status"] == "success"
    hit = (await call(twins, "read_memory", query="喝什么茶", scope="user"))["hits"][0]
    assert (hit["id"], hit["text"], hit["tags"], hit["importance"]) == (
        written["memory_id"],
        "我喜欢喝乌龙茶",
        "饮食",
        "high",
    )
    await call(twins, "update_memory", id=hit["id"], scope="user", content="我喜欢喝龙井")
    listed = await call(twins, "list_memory", limit=5, scope="user")
    assert (listed["total"], listed["memories"][0]["text"]) == (1, "我喜欢喝龙井")
    assert (await call(twins, "delete_memory", id=hit["id"], scope="user"))["deleted"] == "我喜欢喝龙井"
    assert (await call(twins, "list_memory", scope="user"))["total"] == 0


async def test_a_hit_costs_tens_of_characters_beside_its_text():
    twins = make()
    await call(twins, "write_memory", content="我喜欢喝乌龙茶", tags="饮食", importance="high", scope="user")
    raw = await run(TOOLS["read_memory"], twins, ZHANG, given={"query": "茶", "scope": "user"})
    assert len(raw) < 160


async def test_failures_are_one_sentence_with_status_error():
    twins = make(limit=1)
    await call(twins, "write_memory", content="我喜欢茶", scope="user")
    twins.embedder.down = True
    for name, arguments, why in [
        ("write_memory", {"content": " "}, "为空"),
        ("write_memory", {}, "content"),
        ("write_memory", {"content": "我喜欢茶"}, "已经有了"),
        ("write_memory", {"content": "x", "importance": "urgent"}, "importance"),
        ("write_memory", {"content": "x", "scope": "group"}, "不在群聊"),
        ("write_memory", {"content": "另一件"}, "上限 1 条"),
        ("read_memory", {"query": "茶", "top_k": 0}, "top_k"),
        ("update_memory", {"id": "ffffffff", "content": "y"}, "没有编号"),
        ("delete_memory", {"id": "ffffffff"}, "没有编号"),
        ("update_memo", {"content": "字" * 1001}, "1001 字"),
        ("append_memo", {"content": ""}, "为空"),
    ]:
        result = await call(twins, name, **arguments)
        assert result["status"] == "error", name
        assert why in result["message"], result
        assert "\n" not in result["message"]


async def test_an_explicit_null_for_an_optional_argument_counts_as_absent():
    twins = make()
    await call(twins, "write_memory", content="我喜欢茶", scope="user", tags=None)
    result = await call(twins, "read_memory", query="茶", importance=None, top_k=None)
    assert len(result["hits"]) == 1


async def test_an_unforeseen_failure_reaches_the_log_and_not_the_model(caplog):
    twins = make()

    async def broken(*_, **__):
        raise RuntimeError("/secret/path")

    twins.facts.recall = broken
    result = await call(twins, "read_memory", query="茶")
    assert result["status"] == "error"
    assert "secret" not in result["message"]
    assert "/secret/path" in caplog.text


async def test_members_of_a_group_cannot_change_what_belongs_to_the_group_through_the_model():
    twins = make()
    written = await call(twins, "write_memory", MEMBER, content="群规：不刷屏", scope="group")
    for name, arguments in [
        ("delete_memory", {"id": written["memory_id"], "scope": "group"}),
        ("update_memory", {"id": written["memory_id"], "scope": "group", "content": "随便刷"}),
        ("update_memo", {"content": "x"}),
        ("append_memo", {"content": "x"}),
    ]:
        assert "无权" in (await call(twins, name, MEMBER, **arguments))["message"]
    assert (await call(twins, "delete_memory", ADMIN, id=written["memory_id"], scope="group"))["status"] == "success"


async def test_the_memo_is_read_appended_and_replaced():
    twins = make()
    assert (await call(twins, "read_memo"))["chars"] == 0
    await call(twins, "update_memo", content="姓名：张三")
    await call(twins, "append_memo", content="偏好：简短回答")
    assert (await call(twins, "read_memo"))["memo"] == "姓名：张三\n偏好：简短回答"


@pytest.mark.parametrize("account", ["QQPlatform_Private_10002", "10002"])
async def test_an_argument_that_names_another_account_changes_nothing(account):
    twins = make()
    await call(twins, "write_memory", content="我喜欢茶", scope="user", user_id=account)
    assert (await call(twins, "list_memory", scope="user"))["total"] == 1
