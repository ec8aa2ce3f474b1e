"""Assets, tools and analysis through the front door: a real root, a real sandbox."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from amrita_plugin_memory.amos import AMOS, ACLDeniedError, AclEntry, AclFile, AssetNotFoundError, InvalidAssetError
from amrita_plugin_memory.amos.errors import ToolCodeError
from amrita_plugin_memory.kernel.errors import InvalidInput

ADD = {"code.py": "def run(params):\n    return params['a'] + params['b']\n"}


@pytest.fixture
async def amos(tmp_path: Path) -> AsyncIterator[AMOS]:
    async with await AMOS.create(root_dir=tmp_path / "root", actor="u1", auto_grant_actor=True, fsync=False) as root:
        yield root


def off(**more: Any) -> dict[str, Any]:
    return {"sandbox": {"engine": "off"}, "fsync": False, **more}


async def test_a_tool_is_made_run_changed_and_taken_out_of_use(amos: AMOS) -> None:
    assert await amos.create_asset("tool", "add", "# 加法", ADD, {"tags": ["math"]}) == "amos://assets/tool/add"
    result = await amos.execute_asset("tool", "add", {"a": 1, "b": 2}, timeout_ms=5000)
    assert (result.ok, result.output, result.error) == (True, 3, None)
    assert await amos.execute_tool("add", {"a": "x", "b": "y"}) == "xy"
    await amos.update_tool("add", code="def run(params):\n    return 0\n", schema={"type": "object", "properties": {}})
    tool = await amos.get_tool("add")
    assert tool is not None
    assert (tool["metadata"]["version"], tool["metadata"]["tags"], tool["backups"]) == (2, ["math"], ["v1"])
    assert tool["schema"] == {"type": "object", "properties": {}}
    assert await amos.execute_tool("add") == 0
    assert await amos.delete_tool("add")
    assert (await amos.list_tools(), await amos.list_tools(include_deprecated=True)) == ([], ["add"])
    with pytest.raises(InvalidAssetError, match="停用"):
        await amos.execute_tool("add")
    assert not (await amos.execute_asset("tool", "add")).ok
    assert await amos.delete_tool("add", soft=False)
    assert not await amos.delete_tool("add", soft=False)
    assert await amos.get_tool("add") is None


async def test_new_code_that_does_not_parse_changes_nothing(amos: AMOS) -> None:
    await amos.create_asset("tool", "add", "d", ADD)
    with pytest.raises(ToolCodeError, match="第 1 行"):
        await amos.update_tool("add", code="def run(:")
    assert await amos.get_asset_code("tool", "add", "code.py") == ADD["code.py"]


async def test_a_workflow_is_compiled_run_and_compiled_again(amos: AMOS) -> None:
    await amos.add_workflow("旅行", "# 旅行规划\n1. 确认日期 {date}\n2. 订酒店 {{city}}\n")
    assert await amos.compile_workflow_to_tool("旅行", "trip") == "amos://assets/tool/trip"
    got = await amos.execute_tool("trip", {"city": "杭州"})
    assert got == {
        "workflow": "旅行", "total": 2, "missing": ["date"],
        "steps": [{"step": 1, "text": "确认日期 {date}"}, {"step": 2, "text": "订酒店 杭州"}],
    }  # fmt: skip
    assert [tool["name"] for tool in await amos.find_tools("旅行规划")] == ["trip"]
    await amos.compile_workflow_to_tool("旅行", "trip", {"overwrite": True, "description": "新的"})
    tool = await amos.get_tool_detail("trip")
    assert tool is not None
    assert (tool["description"], tool["status"]) == ("新的", "active")
    with pytest.raises(InvalidInput, match="overwrite"):
        await amos.compile_workflow_to_tool("旅行", "trip", {"overwite": True})


async def test_a_draft_says_why_does_not_run_and_becomes_active_with_good_code(tmp_path: Path) -> None:
    def model(messages: list[dict[str, str]]) -> str:
        return json.dumps({"code": "class A(Exception): pass\n"})

    async with await AMOS.create(
        root_dir=tmp_path, actor="u1", auto_grant_actor=True, compile_fn=model, fsync=False
    ) as amos:
        await amos.add_workflow("w", "1. 做")
        await amos.compile_workflow_to_tool("w", "t")
        metadata = await amos.get_asset_metadata("tool", "t")
        assert metadata["status"] == "draft"
        assert "inheritance" in metadata["compileError"]
        with pytest.raises(InvalidAssetError, match="草稿"):
            await amos.execute_tool("t")
        await amos.update_tool("t", code="__return_value__ = 5")
        assert await amos.execute_tool("t") == 5
        assert "compileError" not in await amos.get_asset_metadata("tool", "t")


async def test_without_the_right_nobody_executes_by_either_door(tmp_path: Path) -> None:
    async with await AMOS.create(root_dir=tmp_path, actor="u1", **off()) as amos:
        await amos.create_asset("tool", "add", "d", ADD)
        with pytest.raises(ACLDeniedError):
            await amos.execute_tool("add")
        result = await amos.execute_asset("tool", "add")
        assert (result.ok, result.error_type) == (False, "ACLDeniedError")


async def test_shared_assets_are_read_by_all_and_written_only_by_who_may(tmp_path: Path) -> None:
    async with await AMOS.create(root_dir=tmp_path, actor="system", **off()) as system:
        await system.create_asset("tool", "s", "共享", ADD, shared=True)
        await system.create_asset("page", "p", "页面", {"index.html": "<p>"}, shared=True)
        user = system.at("u1")
        assert await user.get_asset_definition("tool", "s") == "共享"
        for denied in (
            user.update_asset("tool", "s", "x"),
            user.delete_asset("tool", "s"),
            user.delete_tool("s"),
            user.update_tool("s", metadata={"k": 1}),
            user.create_asset("tool", "mine", "d", {}, shared=True),
        ):
            with pytest.raises(ACLDeniedError):
                await denied
        assert await user.list_assets() == ["amos://assets/tool/s", "amos://assets/page/p"]
        await user.create_asset("tool", "s", "我的", ADD)
        assert await user.get_asset_definition("tool", "s") == "我的"
        assert await system.at("u2").get_asset_definition("tool", "s") == "共享"
        await user.delete_asset("tool", "s")
        assert await user.get_asset_definition("tool", "s") == "共享"


async def test_a_list_that_grants_no_reading_hides_nothing_but_opens_nothing(tmp_path: Path) -> None:
    async with await AMOS.create(root_dir=tmp_path, actor="u1", **off()) as amos:
        await amos.create_asset("tool", "add", "d", ADD)
        await amos.write_acl(
            AclFile("u1", (AclEntry("profile.md", ("read",), ("u1",)),), {"read": (), "write": (), "execute": ()})
        )
        calls = [
            amos.get_asset_definition("tool", "add"), amos.get_asset_code("tool", "add"), amos.get_asset_metadata("tool", "add"),
            amos.list_assets(), amos.list_asset_files("tool", "add"), amos.update_asset("tool", "add", "x"), amos.list_tools(),
            amos.delete_asset("tool", "add"), amos.create_asset("page", "p", "d"), amos.asset_exists("tool", "add"),
            amos.get_tool("add"), amos.delete_tool("add"), amos.analyze_session(), amos.incremental_analyze(), amos.extract_facts(),
            amos.find_turning_point(), amos.compile_workflow_to_tool("w", "t"), amos.search_assets("x"),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(ACLDeniedError):
                await call


async def test_tags_of_the_metadata_and_of_the_index_both_stay_through_updates(tmp_path: Path) -> None:
    async with await AMOS.create(root_dir=tmp_path, actor="u1", **off()) as amos:
        await amos.create_asset("tool", "add", "# 加法", ADD, {"tags": ["math"]})
        path = "users/u1/assets/tools/add/definition.md"
        await amos.add_tag(path, "常用")
        await amos.update_asset("tool", "add", "# 加法二", {"code.py": "1"}, {"k": 1})
        assert await amos.list_by_tag("math") == await amos.list_by_tag("常用") == [path]
        (detail,) = await amos.list_assets_detail("tool")
        assert (detail["tags"], detail["version"], detail["description"]) == (["math", "常用"], 2, "加法二")
        assert [hit.path for hit in await amos.search_assets("加法二")] == [path]
        await amos.delete_asset("tool", "add")
        assert (await amos.list_by_tag("math"), await amos.search_assets("加法二")) == ([], [])


async def test_events_tell_what_happened_to_whom_and_no_code(tmp_path: Path) -> None:
    async with await AMOS.create(root_dir=tmp_path, actor="u1", auto_grant_actor=True, **off()) as amos:
        heard: list[tuple[str, dict[str, Any]]] = []
        names = (
            "assetCreated",
            "assetUpdated",
            "assetDeleted",
            "toolUpdated",
            "toolDeleted",
            "toolCompiled",
            "tool_executed",
        )
        for name in names:
            amos.on(name, lambda payload, meta: heard.append((meta["event"], dict(payload))))
        await amos.add_workflow("w", "1. 做")
        await amos.create_asset("tool", "add", "d", {"code.py": "SECRET"})
        await amos.update_asset("tool", "add", "d2")
        await amos.update_tool("add", metadata={"k": 1})
        await amos.compile_workflow_to_tool("w", "t")
        await amos.execute_asset("tool", "add")
        await amos.delete_tool("add")
        await amos.delete_asset("tool", "add")
        assert [name for name, _ in heard] == [
            "assetCreated",
            "assetUpdated",
            "toolUpdated",
            "toolCompiled",
            "tool_executed",
            "toolDeleted",
            "assetDeleted",
        ]
        assert all(payload["actor"] == "u1" for _, payload in heard)
        assert "SECRET" not in json.dumps(heard) + (tmp_path / "events/event_log.jsonl").read_text()


async def test_positional_and_named_parts_mean_the_same(tmp_path: Path) -> None:
    async with await AMOS.create(root_dir=tmp_path, actor="u1", **off()) as amos:
        await amos.create_asset("tool", "a", "d", ADD, {"k": 1})
        await amos.create_asset("tool", "b", "d", metadata={"k": 1}, code_files=ADD)
        assert (await amos.get_asset_metadata("tool", "a"))["k"] == (await amos.get_asset_metadata("tool", "b"))["k"]
        assert await amos.list_asset_files("tool", "a") == await amos.list_asset_files("tool", "b") == ["code.py"]
        with pytest.raises(InvalidInput):
            await amos.create_asset("tool", "c", "d", {}, {}, {})


async def test_an_asset_that_is_not_there_is_not_found_and_not_made(tmp_path: Path) -> None:
    async with await AMOS.create(root_dir=tmp_path, actor="u1", **off()) as amos:
        for call in (
            amos.get_asset_definition("tool", "x"),
            amos.update_asset("tool", "x", "d"),
            amos.update_tool("x", metadata={}),
        ):
            with pytest.raises(AssetNotFoundError):
                await call
        assert not await amos.delete_asset("tool", "x")
        assert not await amos.asset_exists("tool", "x")
        assert await amos.list_assets() == []


async def test_approval_is_given_by_the_system_and_lost_with_a_change(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"sandbox": {"require_approval": True}, "auto_grant_actor": True, "fsync": False}
    async with await AMOS.create(root_dir=tmp_path, actor="u1", **settings) as amos:
        await amos.create_asset("tool", "add", "d", {"code.py": "__return_value__ = 1"})
        with pytest.raises(ACLDeniedError, match="确认"):
            await amos.execute_tool("add")
        with pytest.raises(ACLDeniedError):
            await amos.approve_tool("add")
        await amos.at("system").approve_tool("add", actor="u1")
        assert await amos.execute_tool("add") == 1
        await amos.update_tool("add", code="__return_value__ = 2")
        with pytest.raises(ACLDeniedError, match="确认"):
            await amos.execute_tool("add")


async def test_the_sandbox_of_a_root_is_closed_with_it(tmp_path: Path) -> None:
    amos = await AMOS.create(root_dir=tmp_path, actor="u1", auto_grant_actor=True, fsync=False)
    await amos.create_asset("tool", "add", "d", ADD)
    assert await amos.execute_tool("add", {"a": 1, "b": 1}) == 2
    await amos.close()
    assert amos.sandbox_executor._engines == {}


async def test_what_the_manifest_asks_for_and_is_not_here_is_said_and_the_root_opens(tmp_path: Path) -> None:
    async with await AMOS.create(root_dir=tmp_path, actor="u1", **off()) as amos:
        assert amos.capability_check.compatible
        assert not amos.llm_device.available
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(
        json.dumps({**manifest, "required_capabilities": {"llm": {"chat": True}, "http": True, "sandbox": True}})
    )
    async with await AMOS.create(root_dir=tmp_path, actor="u1", **off()) as amos:
        assert amos.capability_check.missing == ("llm.chat", "sandbox")
    config = {"provider": "ollama", "model": "q"}
    async with await AMOS.create(root_dir=tmp_path, actor="u1", fsync=False, llm_config=config) as amos:
        assert amos.capability_check.compatible
        assert amos.workflow_compiler.compile_fn is not None


async def test_an_unusable_setting_is_refused_when_the_root_is_opened(tmp_path: Path) -> None:
    for sandbox in ({"engin": "off"}, {"runs_per_day": -1}, {"timeout": "soon"}):
        with pytest.raises(InvalidInput):
            await AMOS.create(root_dir=tmp_path, actor="u1", sandbox=sandbox)
