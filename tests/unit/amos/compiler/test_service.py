from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.fakebox import FakeSandbox

from amrita_plugin_memory.amos.assets import Asset, AssetStore
from amrita_plugin_memory.amos.compiler import CompileOptions, WorkflowCompiler
from amrita_plugin_memory.amos.errors import (
    AssetExistsError,
    LLMUnavailableError,
    SandboxUnavailable,
    ToolCodeError,
)
from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.kernel.errors import NotFound

BAD, GOOD = "def run(:", "def run(params):\n    return 1\n"


@pytest.fixture
def asset(tmp_path: Path) -> Asset:
    return Asset(layout.user_dir("u1"), "tool", "trip")


@pytest.fixture
def store(tmp_path: Path) -> AssetStore:
    return AssetStore(FileRoot.open(tmp_path, sync=False))


async def compile_(
    store: AssetStore, asset: Asset, box: FakeSandbox, fn: Any = None, text: str | None = "1. 做", **more: Any
) -> Any:
    compiler = WorkflowCompiler(store, box, fn, **more)
    return await compiler.compile(asset, ("旅行", text), author="u1", now="t", options=CompileOptions())


async def test_without_a_model_the_template_is_stored_and_active(store: AssetStore, asset: Asset) -> None:
    made = await compile_(store, asset, FakeSandbox(), text="# 去哪\n1. 订 {city}")
    metadata = store.read_metadata(asset)
    assert (made.problem, metadata["status"], metadata["compiledFrom"], metadata["version"]) == (
        "",
        "active",
        "旅行",
        "v1",
    )
    assert metadata["description"] == "去哪"
    assert "city" in (store.read_schema(asset) or {})["properties"]
    assert metadata["schema"] == store.read_schema(asset)
    assert "> 1. 订 {city}" in store.read_definition(asset)


async def test_what_does_not_parse_goes_back_to_the_model_with_the_error(store: AssetStore, asset: Asset) -> None:
    heard: list[list[dict[str, str]]] = []

    async def model(messages: list[dict[str, str]]) -> str:
        heard.append(messages)
        return json.dumps({"code": BAD if len(heard) < 3 else GOOD, "description": "走"})

    box = FakeSandbox(checks=[ToolCodeError("第 1 行 X"), ToolCodeError("第 1 行 Y"), None])
    made = await compile_(store, asset, box, model)
    assert (made.problem, store.read_file(asset, "code.py"), store.read_metadata(asset)["description"]) == (
        "",
        GOOD,
        "走",
    )
    assert [len(messages) for messages in heard] == [2, 4, 6]
    assert "第 1 行 Y" in heard[2][-1]["content"]


async def test_after_two_retries_it_is_a_draft_that_says_why(store: AssetStore, asset: Asset) -> None:
    count = 0

    def model(messages: list[dict[str, str]]) -> str:
        nonlocal count
        count += 1
        return json.dumps({"code": BAD})

    made = await compile_(store, asset, FakeSandbox(checks=[ToolCodeError("坏")] * 9), model)
    metadata = store.read_metadata(asset)
    assert (count, made.problem, metadata["status"], metadata["compileError"]) == (3, "坏", "draft", "坏")


async def test_an_answer_without_code_is_a_draft_too(store: AssetStore, asset: Asset) -> None:
    made = await compile_(store, asset, FakeSandbox(), lambda messages: "我不会")
    assert "没有代码" in made.problem
    assert store.read_metadata(asset)["status"] == "draft"


async def test_code_that_could_not_be_checked_is_a_draft(store: AssetStore, asset: Asset) -> None:
    made = await compile_(store, asset, FakeSandbox(checks=[SandboxUnavailable("沙箱已关闭")]))
    assert "沙箱已关闭" in made.problem
    assert store.read_metadata(asset)["status"] == "draft"


async def test_a_model_that_does_not_answer_stores_nothing(store: AssetStore, asset: Asset) -> None:
    import asyncio

    async def silent(messages: list[dict[str, str]]) -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(LLMUnavailableError):
        await compile_(store, asset, FakeSandbox(), silent, timeout=0.05)
    assert not store.exists(asset)


async def test_a_workflow_that_is_not_there_is_not_found(store: AssetStore, asset: Asset) -> None:
    for text in (None, "  \n"):
        with pytest.raises(NotFound):
            await compile_(store, asset, FakeSandbox(), text=text)


async def test_a_second_time_needs_overwrite_and_becomes_a_new_version(store: AssetStore, asset: Asset) -> None:
    await compile_(store, asset, FakeSandbox())
    with pytest.raises(AssetExistsError):
        await compile_(store, asset, FakeSandbox())
    compiler = WorkflowCompiler(store, FakeSandbox(), lambda messages: json.dumps({"code": GOOD}))
    await compiler.compile(asset, ("旅行", "1. 做"), author="u1", now="t2", options=CompileOptions(overwrite=True))
    assert (store.read_metadata(asset)["version"], store.backups(asset), store.read_file(asset, "code.py")) == (
        2,
        ["v1"],
        GOOD,
    )
