from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openai.types.chat import ChatCompletionFunctionToolParam
from pydantic import ConfigDict, TypeAdapter
from support.loopback import Asked, answer, loopback

from amrita_plugin_memory.amos import AMOS
from amrita_plugin_memory.amos.devices import LLMConfig, LLMDevice
from amrita_plugin_memory.amos.toolset.service import specs

TOOL = {"asset_type": "tool", "name": "add"}
VALID: dict[str, dict[str, Any]] = {
    "memory_search": {"query": "杭州", "top_k": 3, "scope": "knowledge"},
    "memory_search_all": {"query": "加法"},
    "memory_compress": {"force": True},
    "memory_analyze_turn": {"user_msg": "我叫小明", "assistant_msg": "好"},
    "memory_classify_message": {"message": "我叫小明"},
    "memory_analyze_session": {"recent_turns": 5},
    "memory_extract_facts": {},
    "memory_replace_soul": {"content": "温柔"},
    "memory_replace_profile": {"content": "# 画像\n爱喝茶"},
    "memory_replace_summary": {"content": "摘要"},
    "memory_append_profile": {"content": "爱喝茶", "section": "偏好"},
    "memory_remove_profile_fact": {"keyword": "茶"},
    "memory_append_summary_point": {"point": "去杭州"},
    "memory_add_workflow": {"name": "购物", "content": "1. 列单"},
    "memory_get_workflow": {"name": "旅行"},
    "memory_list_workflows": {},
    "memory_update_workflow": {"name": "旅行", "content": "3. 回家", "mode": "append"},
    "memory_delete_workflow": {"name": "旅行"},
    "memory_add_knowledge": {"domain": "旅行", "entity": "苏州", "content": "园林"},
    "memory_get_knowledge": {"domain": "旅行", "entity": "杭州"},
    "memory_update_knowledge": {"domain": "旅行", "entity": "杭州", "content": "湖"},
    "memory_delete_knowledge": {"domain": "旅行", "entity": "杭州"},
    "memory_list_knowledge": {"domain": "旅行"},
    "memory_add_tag": {"rel_path": "users/u1/knowledge/旅行/杭州.md", "tag": "城市"},
    "memory_remove_tag": {"rel_path": "amos://knowledge/旅行/杭州", "tag": "城市"},
    "memory_list_by_tag": {"tag": "城市"},
    "asset_create": {
        "asset_type": "page",
        "name": "home",
        "definition": "首页",
        "code_files": {"index.html": "<p>"},
        "metadata": {"tags": ["a"]},
    },
    "asset_update": {**TOOL, "code_files": {"code.py": "1", "x.py": None}, "metadata_updates": {"k": 1}},
    "asset_delete": TOOL,
    "asset_get_definition": TOOL,
    "asset_get_metadata": TOOL,
    "asset_get_code": TOOL,
    "asset_list": {},
    "asset_search": {"query": "加法"},
    "asset_execute": {"name": "add", "input": {"a": 1}},
    "tool_compile": {"workflow_name": "旅行", "tool_name": "trip"},
}
HOSTILE: tuple[Any, ...] = (
    "../../../../etc/passwd", "..", "", " ", "a\0b", "\ud800", "x" * 300_000, "amos://users/u2/profile", "users/u2/profile.md",
    "/etc/passwd", "__proto__", "{{7*7}}", "'; import os", "con", "\u202e", -1, 0, 1e308, True, None, [], ["../x"], {},
    {"a": {"b": {}}}, {"../x": "y"}, {"metadata.json": "{}"}, {"code.py": 5}, {"engine": "process"},
)  # fmt: skip


@pytest.fixture
async def amos(tmp_path: Path) -> AsyncIterator[AMOS]:
    async def add(code: str, language: str, given: dict[str, Any]) -> Any:
        return given

    settings: dict[str, Any] = {"sandbox": {"engine": "off", "runs_per_minute": 0, "runs_per_day": 0}, "fsync": False}
    async with await AMOS.create(
        root_dir=tmp_path / "root",
        actor="u1",
        auto_grant_actor=True,
        summarize_fn=lambda text, wish: "摘要",
        **settings,
    ) as root:
        await root.at("u2").replace_profile("u2 的秘密")
        await root.add_workflow("旅行", "# 旅行\n1. 订 {city}")
        await root.add_knowledge("旅行", "杭州", "西湖")
        await root.create_asset("tool", "add", "# 加法", {"code.py": "1", "x.py": "2"}, {"tags": ["math"]})
        await root.add_turn("我叫小明，喜欢杭州", "好")
        root.register_asset_executor(add)
        yield root


def plain(value: Any) -> bool:
    """True for JSON made of built-in types only."""
    return json.loads(json.dumps(value, allow_nan=False)) == value


def test_the_table_of_valid_calls_names_every_tool() -> None:
    assert set(VALID) == set(specs())


@pytest.mark.parametrize("name", sorted(VALID))
async def test_a_valid_call_works_and_answers_json(amos: AMOS, name: str) -> None:
    result = await amos.tools.call(name, VALID[name])
    assert result.ok, result.error
    assert plain(result)
    again = await amos.tools.call(name.replace("_", ".", 1), json.dumps(VALID[name]))
    assert plain(again)


@pytest.mark.parametrize("name", sorted(VALID))
async def test_hostile_arguments_are_answered_in_words_and_harm_nobody(amos: AMOS, name: str, tmp_path: Path) -> None:
    properties = specs()[name].parameters["properties"]
    for key in properties:
        for value in HOSTILE:
            result = await amos.tools.call(name, {**VALID[name], key: value})
            assert plain(result), (key, value)
            assert result.ok or (result.error and "\n" not in result.error), (key, value, result.error)
    assert await amos.at("u2").get_profile() == "u2 的秘密"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root"]
    assert sorted(path.name for path in (tmp_path / "root/users").iterdir()) == ["u1", "u2"]


@pytest.mark.parametrize("name", sorted(VALID))
async def test_missing_and_unknown_arguments_are_named(amos: AMOS, name: str) -> None:
    spec = specs()[name]
    unknown = await amos.tools.call(name, {**VALID[name], "evil": 1})
    assert not unknown.ok
    assert "evil" in (unknown.error or "")
    for key in spec.parameters["required"]:
        missing = await amos.tools.call(name, {k: v for k, v in VALID[name].items() if k != key})
        assert not missing.ok
        assert key in (missing.error or "")
        assert "缺少" in (missing.error or "")


@pytest.mark.parametrize("args", ["not json", "[1]", "5", [1], 5, "{" * 9000])
async def test_arguments_that_are_no_object_are_refused_in_words(amos: AMOS, args: Any) -> None:
    result = await amos.tools.call("memory.search", args)
    assert not result.ok
    assert "JSON" in (result.error or "")


async def test_an_unknown_tool_is_answered_with_those_that_are_near(amos: AMOS) -> None:
    result = await amos.tools.call("memory.serach", {"query": "x"})
    assert "memory_search" in (result.error or "")
    for name in ("", "os.system", "x" * 10_000, None, 5):
        assert not (await amos.tools.call(name, {})).ok  # type: ignore[arg-type]


async def test_what_is_not_allowed_is_neither_listed_nor_called(amos: AMOS) -> None:
    tools = amos.tools
    tools.set_permission(deny=["memory.replaceSoul", "asset.*"])
    names = {tool["function"]["name"] for tool in amos.tools.list_tools()}
    assert "memory_search" in names
    assert not [name for name in names if name == "memory_replace_soul" or name.startswith("asset_")]
    refused = await amos.tools.call("memory_replace_soul", {"content": "x"})
    assert (refused.ok, refused["error_type"]) == (False, "Forbidden")
    assert await amos.get_soul() == ""
    tools.set_permission(allow=["memory.search"])
    assert [tool["function"]["name"] for tool in amos.tools.list_tools()] == ["memory_search"]
    tools.set_permission()
    assert len(amos.tools.list_tools()) == len(VALID)


async def test_every_call_is_told_to_the_audit_and_a_failing_listener_fails_nobody(amos: AMOS) -> None:
    heard: list[tuple[str, dict[str, Any], bool]] = []

    async def listener(name: str, args: dict[str, Any], result: dict[str, Any]) -> None:
        heard.append((name, args, result["ok"]))

    def broken(*_: Any) -> None:
        raise RuntimeError("listener")

    amos.tools.on_call(broken)
    amos.tools.on_call(listener)
    assert (await amos.tools.call("memory.listByTag", {"tag": "math"})).ok
    await amos.tools.call("nope", {})
    assert heard == [("memory.list_by_tag", {"tag": "math"}, True), ("nope", {}, False)]


async def test_a_tool_works_for_the_user_of_its_handle_whatever_the_arguments_say(amos: AMOS) -> None:
    await amos.at("u2").tools.call("memory.append_profile", {"content": "爱猫"})
    assert "爱猫" in await amos.at("u2").get_profile()
    assert "爱猫" not in await amos.get_profile()
    assert not (await amos.tools.call("memory.append_profile", {"content": "x", "actor": "u2"})).ok


async def test_a_model_cannot_choose_the_engine_or_the_origin_of_a_tool(amos: AMOS) -> None:
    call = {
        "asset_type": "tool",
        "name": "sly",
        "definition": "d",
        "code_files": {"code.py": "1"},
        "metadata": {"engine": "process", "compiledFrom": "x", "tags": ["t"]},
    }
    assert (await amos.tools.call("asset.create", call)).ok
    metadata = await amos.get_asset_metadata("tool", "sly")
    assert "engine" not in metadata
    assert "compiledFrom" not in metadata
    assert metadata["tags"] == ["t"]


async def test_an_answer_that_is_too_long_is_refused_with_advice(amos: AMOS) -> None:
    await amos.add_workflow("长", "长" * 120_000)
    result = await amos.tools.call("memory.get_workflow", {"name": "长"})
    assert "缩小" in (result.error or "")


# -- the schemas ------------------------------------------------------------------------------------------------------


async def test_every_schema_is_valid_complete_and_closed(amos: AMOS) -> None:
    for tool in amos.tools.list_tools():
        function = tool["function"]
        parameters = function["parameters"]
        jsonschema.Draft202012Validator.check_schema(parameters)
        assert re.search("[\u4e00-\u9fff]", function["description"])
        assert parameters["additionalProperties"] is False
        assert set(parameters["required"]) <= set(parameters["properties"])
        for key, schema in parameters["properties"].items():
            assert schema.get("type") in ("string", "integer", "boolean", "object", "array"), (function["name"], key)
            assert schema.get("description"), (function["name"], key)
        jsonschema.validate(VALID[function["name"]], parameters)


async def test_a_chat_request_with_these_tools_passes_a_strict_endpoint(amos: AMOS) -> None:
    class Strict(ChatCompletionFunctionToolParam):
        __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    checker = TypeAdapter(list[Strict])

    def endpoint(asked: Asked) -> bytes:
        tools = checker.validate_json(json.dumps(json.loads(asked.body)["tools"]))
        names = [tool["function"]["name"] for tool in tools]
        fits = (
            all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names) and len(set(names)) == len(names) <= 128
        )
        if not fits or any(len(tool["function"].get("description", "")) > 1024 for tool in tools):
            return answer(b'{"error": {"message": "invalid tools"}}', 400)
        call = {"id": "c", "type": "function", "function": {"name": names[0], "arguments": '{"query": "杭州"}'}}
        choice = {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": None, "tool_calls": [call]},
        }
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return answer(json.dumps(body).encode(), content_type="application/json")

    async with loopback(endpoint) as server:
        llm = LLMDevice(
            LLMConfig.of({"base_url": f"{server.url}/v1", "model": "m", "max_retries": 0, "provider": "custom"})
        )
        got = await llm.chat([{"role": "user", "content": "找杭州"}], tools=amos.tools.list_tools())
        await llm.aclose()
    result = await amos.tools.call(got.tool_calls[0].name, got.tool_calls[0].arguments)
    assert result.ok
    assert "杭州" in json.dumps(result, ensure_ascii=False)
