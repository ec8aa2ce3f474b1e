from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.fakebox import FakeSandbox

from amrita_plugin_memory.amos.assets import AssetDraft, AssetStore, AssetUpdate, RunBudget, ToolRunner
from amrita_plugin_memory.amos.errors import ACLDeniedError, AssetNotFoundError, InvalidAssetError, SandboxTimeout
from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import LimitReached
from amrita_plugin_memory.kernel.scope import Scope

ME = Scope("u1")


class Guard:
    """Lets everybody do what is listed."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed

    async def assert_permission(self, resource: str, action: Any, actor: str | None = None) -> None:
        if f"{action} {resource}" not in self.allowed:
            raise ACLDeniedError("没有权限")


RUN_MINE = "execute users/u1/assets/tools/w"


@pytest.fixture
def store(tmp_path: Path) -> AssetStore:
    store = AssetStore(FileRoot.open(tmp_path, sync=False))
    asset = store.at(layout.user_dir("u1"), "tool", "w")
    store.create(asset, AssetDraft("d", {"code.py": "CODE"}), author="u1", now="t")
    return store


def runner(store: AssetStore, box: FakeSandbox | None = None, *allowed: str, **more: Any) -> ToolRunner:
    return ToolRunner(store, box or FakeSandbox(), Guard(*(allowed or (RUN_MINE,))), **more)  # type: ignore[arg-type]


async def test_a_run_reaches_the_sandbox_with_its_parameters_time_and_declared_names(store: AssetStore) -> None:
    box = FakeSandbox([7])
    assert await runner(store, box, env_vars=("W_KEY",)).run(ME, "w", {"a": 1}, timeout_ms=100) == 7
    assert box.ran == [("CODE", {"params": {"a": 1}, "timeout": 0.1, "declared": ("W_KEY",), "engine": None})]


async def test_both_doors_ask_the_access_list_about_the_place_of_the_tool(store: AssetStore) -> None:
    box = FakeSandbox()
    denied = runner(store, box, "execute users/u1/assets/tools/other")
    with pytest.raises(ACLDeniedError):
        await denied.run(ME, "w")
    result = await denied.attempt(ME, "tool", "w")
    assert (result.ok, result.error_type, box.ran) == (False, "ACLDeniedError", [])


async def test_a_shared_tool_needs_the_right_to_the_shared_place(store: AssetStore) -> None:
    store.create(store.at(layout.SHARED, "tool", "s"), AssetDraft("d", {"code.py": "S"}), author="x", now="t")
    with pytest.raises(ACLDeniedError):
        await runner(store, None, "execute users/u1/assets/tools/s").run(ME, "s")
    assert await runner(store, FakeSandbox([1]), "execute shared/assets/tools/s").run(ME, "s") == 1


@pytest.mark.parametrize(("status", "word"), [("deprecated", "停用"), ("draft", "草稿"), ("weird", "草稿")])
async def test_only_an_active_tool_runs(store: AssetStore, status: str, word: str) -> None:
    asset = store.find(ME, "tool", "w")
    store.files.write_json(asset.folder / "metadata.json", {**store.read_metadata(asset), "status": status})
    box = FakeSandbox()
    with pytest.raises(InvalidAssetError, match=word):
        await runner(store, box).run(ME, "w")
    assert box.ran == []


async def test_what_cannot_run_is_said_in_the_result(store: AssetStore) -> None:
    store.create(store.at(layout.user_dir("u1"), "tool", "js"), AssetDraft("d", {"code.js": "1"}), author="u", now="t")
    store.create(store.at(layout.user_dir("u1"), "tool", "none"), AssetDraft("d"), author="u", now="t")
    here = runner(store, None, "execute users/u1/assets/tools/js", "execute users/u1/assets/tools/none")
    for kind, name, word in (
        ("page", "w", "只有工具"),
        ("tool", "js", "javascript"),
        ("tool", "none", "code.py"),
        ("tool", "nope", "没有名为"),
        ("spoon", "w", "类型"),
    ):
        result = await here.attempt(ME, kind, name, {})
        assert not result.ok
        assert word in (result.error or "")


async def test_changed_code_needs_a_new_approval(store: AssetStore) -> None:
    here = runner(store, FakeSandbox([1, 2]), require_approval=True)
    with pytest.raises(ACLDeniedError, match="确认"):
        await here.run(ME, "w")
    await here.approve(ME, "w")
    assert await here.run(ME, "w") == 1
    store.update(store.find(ME, "tool", "w"), AssetUpdate(code_files={"code.py": "OTHER"}), now="t")
    with pytest.raises(ACLDeniedError, match="确认"):
        await here.run(ME, "w")


async def test_a_user_has_so_many_runs_in_a_minute_and_in_a_day(store: AssetStore) -> None:
    clock = ManualClock()
    here = runner(store, FakeSandbox(), budget=RunBudget(2, 3, clock))
    await here.run(ME, "w")
    await here.run(ME, "w")
    with pytest.raises(LimitReached, match="一分钟"):
        await here.run(ME, "w")
    clock.advance(seconds=61)
    await here.run(ME, "w")
    clock.advance(seconds=61)
    with pytest.raises(LimitReached, match="今天"):
        await here.run(ME, "w")
    clock.advance(seconds=86_400)
    await here.run(ME, "w")


async def test_a_refused_run_is_not_counted(store: AssetStore) -> None:
    budget = RunBudget(1, 1, ManualClock())
    with pytest.raises(AssetNotFoundError):
        await runner(store, budget=budget).run(ME, "nope")
    assert await runner(store, FakeSandbox([5]), budget=budget).run(ME, "w") == 5


async def test_the_programs_own_executor_keeps_the_locks_and_the_time_limit(store: AssetStore) -> None:
    import asyncio

    async def mine(code: str, language: str, given: dict[str, Any]) -> list[Any]:
        if given.get("slow"):
            await asyncio.Event().wait()
        return [code, language, given]

    here = runner(store, executor=mine)
    assert await here.run(ME, "w", {"a": 1}) == ["CODE", "python", {"a": 1}]
    with pytest.raises(SandboxTimeout):
        await here.run(ME, "w", {"slow": True}, timeout_ms=50)
    with pytest.raises(ACLDeniedError):
        await runner(store, None, "nothing", executor=mine).run(ME, "w")


async def test_a_tool_says_which_engine_it_needs_and_the_sandbox_decides(store: AssetStore) -> None:
    store.update(store.find(ME, "tool", "w"), AssetUpdate(metadata={"engine": "process"}), now="t")
    box = FakeSandbox()
    await runner(store, box).run(ME, "w")
    assert box.ran[0][1]["engine"] == "process"
