"""Roots that the reference implementation and ours write by turns; skipped where tinymem-os is not installed."""

import json
import shutil

import pytest
from support.amos import lines_of, said, shared_folder, stored_messages

from amrita_plugin_memory.amos import AMOS, AclEntry, AclFile

tinymem_os = pytest.importorskip("tinymem_os", reason="tinymem-os, the reference implementation, is not installed")

FIXTURES = shared_folder()


async def ours(root, **kw):
    return await AMOS.create(**{"root_dir": root, "actor": "user_1", "session_id": "s1", "fsync": False, **kw})


async def theirs(root, **kw):
    given = {
        "root_dir": str(root),
        "actor": "user_1",
        "session_id": "s1",
        "summarize_fn": lambda text, _: "their summary",
        **kw,
    }
    return await tinymem_os.AMOS.create(tinymem_os.AMOSOptions(**given))


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


async def furnish(amos):
    await amos.replace_soul("灵魂")
    await amos.replace_profile("# 画像\n称呼: 小王")
    await amos.append_profile("偏好", "- 咖啡")
    await amos.add_workflow("travel", "# 旅行\n计划 hotel")
    await amos.add_knowledge("geo", "hangzhou", "西湖在杭州 hotel")
    await amos.add_tag("users/user_1/knowledge/geo/hangzhou.md", "t")
    for at in range(3):
        await amos.add_turn("s1", f"问{at}\u2028x", f"答{at}\x85")
    await amos.replace_summary("s1", "摘要")


async def looked_at(amos):
    """What a program sees of a furnished root, with the names both sides share."""
    return {
        "prompt": [(m.role, m.content) for m in await amos.build_messages("s1", "???", False)],
        "recent": [(m["role"], m["content"]) for m in await amos.get_recent_messages("s1", 20)],
        "workflows": await amos.list_workflows(),
        "workflow": await amos.get_workflow("travel"),
        "knowledge": await amos.list_knowledge(),
        "entry": await amos.get_knowledge("geo", "hangzhou"),
        "tagged": await amos.list_by_tag("t"),
        "value": await amos.get_profile("称呼") if hasattr(tinymem_os.AMOS, "get_profile") else None,  # since 0.6.1
        "found": sorted(hit.path for hit in await amos.search("hotel")),
    }


async def test_the_reference_sees_in_our_root_what_we_see(root):
    async with await ours(root) as amos:
        await furnish(amos)
        mine = await looked_at(amos)
    assert await looked_at(await theirs(root)) == mine
    assert mine["recent"][0] == ("user", "问0\u2028x")


async def test_we_see_in_a_root_of_the_reference_what_it_sees(root):
    peer = await theirs(root)
    await peer.replace_soul("灵魂")
    await peer.replace_profile("# 画像\n称呼: 小王")
    await peer.append_profile("偏好", "- 咖啡")
    await peer.add_workflow("travel", "# 旅行\n计划 hotel")
    await peer.add_knowledge("geo", "hangzhou", "西湖在杭州 hotel")
    await peer.add_tag("users/user_1/knowledge/geo/hangzhou.md", "t")
    for at in range(3):
        await peer.add_turn("s1", f"问{at}", f"答{at}")
    await peer.replace_summary("s1", "摘要")
    async with await ours(root) as amos:
        assert await looked_at(amos) == await looked_at(peer)
        assert await amos.cache_version() == await peer.cache_version()


async def test_both_continue_one_session_by_turns(root):
    peer = await theirs(root, session_id="other")
    async with await ours(root, summarize_fn=lambda text, _: "our summary") as amos:
        for at in range(15):
            await (amos if at % 3 else peer).add_turn("s1", f"u{at}", f"a{at}")
        wanted = [f"{sign}{at}" for at in range(15) for sign in "ua"]
        assert said(await amos.build_messages("s1", "hi", False)) == [*wanted, "hi"]
        assert said(await peer.get_recent_messages("s1", 100)) == wanted
        assert (await amos.compress_session("s1", True)).archived_turns == 10
        assert (await peer.get_recent_messages("s1", 100))[0]["content"] == "u10"
        for at in range(15, 18):
            await peer.add_turn("s1", f"u{at}", f"a{at}")
        assert (await peer.compress_session("s1", True)).compressed
        assert said(await amos.get_recent_messages("s1", 100)) == [
            f"{sign}{at}" for at in range(13, 18) for sign in "ua"
        ]
        assert await amos.get_summary("s1") == "their summary"
        await amos.add_turn("s1", "u18", "a18")
    found = said(stored_messages(root, "user_1"))
    assert sorted(found) == sorted(f"{sign}{at}" for at in range(19) for sign in "ua")


async def test_keys_of_ours_survive_a_compression_of_the_reference(root):
    peer = await theirs(root, keep_recent_turns=1)
    async with await ours(root) as amos:
        ids = [await amos.add_turn("s1", f"u{at}", "a") for at in range(3)]
        await peer.compress_session("s1", True)
        await amos.edit_turn(ids[0], user="edited")
        assert [row["id"] for row in stored_messages(root, "user_1")][::2] == ids
        assert stored_messages(root, "user_1")[0]["content"] == "edited"


async def test_both_write_one_index(root):
    peer = await theirs(root)
    async with await ours(root) as amos:
        for at in range(4):
            await (amos if at % 2 else peer).add_knowledge("d", f"e{at}", "text")
            await (peer if at % 2 else amos).add_tag(f"users/user_1/knowledge/d/e{at}.md", f"t{at}")
        index = json.loads((root / "index.json").read_text("utf-8"))
        assert {entry["name"]: entry["tags"] for entry in index.values()} == {f"d/e{at}": [f"t{at}"] for at in range(4)}
        assert await peer.list_by_tag("t2") == await amos.list_by_tag("t2")


async def test_the_reference_waits_for_our_lock_and_we_for_its(root):
    from support.amos import P

    from amrita_plugin_memory.amos.ground import FileRoot
    from amrita_plugin_memory.kernel.errors import Locked

    files = FileRoot.open(root, sync=False)
    options = tinymem_os.file_ops.LockOptions(timeout_ms=50)

    async def nothing():
        return "in"

    with files.lock(P("index.json")), pytest.raises(TimeoutError):
        await tinymem_os.file_ops.with_lock(str(root / "index.json"), nothing, options)
    assert await tinymem_os.file_ops.with_lock(str(root / "index.json"), nothing, options) == "in"

    async def we_try():
        with pytest.raises(Locked):
            async with files.lock(P("index.json"), timeout=0.05):
                pass

    await tinymem_os.file_ops.with_lock(str(root / "index.json"), we_try, options)


async def test_an_access_list_of_ours_is_understood_by_the_reference(root):
    async with await ours(root) as amos:
        grant = AclFile(
            "user_1",
            (AclEntry("assets/tools/*", ("execute",), ("user_1",)),),
            {"read": ("owner",), "write": ("owner",), "execute": ()},
        )
        await amos.write_acl(grant)
    peer = await theirs(root)
    assert await peer.security_manager.check_permission("assets/tools/x", "execute", "user_1")
    assert not await peer.security_manager.check_permission("other", "execute", "user_1")


async def test_a_task_of_ours_is_run_by_the_reference_and_the_other_way_round(root):
    peer = await theirs(root)
    ran = []

    async def handler(task):
        ran.append(task.task_id)
        return {"ok": True}

    async with await ours(root) as amos:
        mine, its = await amos.submit_task("reflect", {"n": 1}), await peer.submit_task("dream", {"n": 2})
        peer.task_manager.register_handler("reflect", handler)
        amos.task_manager.register_handler("dream", handler)
        assert await peer.task_manager.run_once() == 1
        assert await amos.task_manager.run_once() == 1
    assert ran == [mine, its]
    assert len(list((root / "tasks/completed").iterdir())) == 2


async def test_packages_are_exchanged(root, tmp_path):
    async with await ours(root) as amos:
        await furnish(amos)
        package = await amos.export_agent(str(tmp_path / "ours.amos"))
    peer = await theirs(tmp_path / "second")
    await peer.portability_manager.import_bundle(package)
    assert await peer.get_knowledge("geo", "hangzhou") == "西湖在杭州 hotel"
    assert len(await peer.get_recent_messages("s1")) == 6
    await peer.export_agent(str(tmp_path / "theirs.amos"))
    async with await ours(tmp_path / "third") as third:
        await third.import_bundle(tmp_path / "theirs.amos")
        assert await third.get_workflow("travel") == "# 旅行\n计划 hotel"
        assert len(await third.search("hotel")) == 2


@pytest.mark.skipif(FIXTURES is None, reason="the shared fixtures are not here")
@pytest.mark.parametrize("version", ["0.5.0", "0.6.1"])
async def test_a_root_the_reference_left_is_opened_read_searched_and_continued(root, version):
    shutil.copytree(FIXTURES / "fixtures" / "tinymem-os" / f"root-{version}", root)
    before = lines_of(root / "users/user_1/sessions/s1/messages.jsonl")
    async with await ours(root, summarize_fn=lambda text, _: "ok") as amos:
        peer = await theirs(root)
        assert said(await amos.get_recent_messages("s1", 100)) == said(before)
        assert await amos.get_soul() == (root / "users/user_1/soul.md").read_text("utf-8")
        assert await amos.list_knowledge() == await peer.list_knowledge()
        assert await amos.list_workflows() == await peer.list_workflows()
        assert await amos.cache_version() == await peer.cache_version()
        assert len(await amos.search("杭州")) >= 1
        await amos.add_turn("s1", "新", "new")
        assert said(await peer.get_recent_messages("s1", 100))[-2:] == ["新", "new"]
        await amos.compress_session("s1", True)
        assert said(stored_messages(root, "user_1"))[-2:] == ["新", "new"]
        amos.set_context("user_2", "assistant", "s9")
        assert await amos.get_soul() == (root / "users/user_2/agents/assistant/soul.md").read_text("utf-8")
        assert len(await amos.get_recent_messages()) >= 2
    await theirs(root, actor="user_2", agent="assistant")


@pytest.mark.skipif(FIXTURES is None, reason="the shared fixtures are not here")
@pytest.mark.parametrize("version", ["0.5.0", "0.6.1"])
async def test_a_package_the_reference_left_is_taken_in(root, version):
    package = FIXTURES / "fixtures" / "tinymem-os" / f"{version}.amos"
    if not package.exists():
        pytest.skip(f"no package of {version}")
    async with await ours(root) as amos:
        report = await amos.import_bundle(package)
        assert report.changes > 3
        assert len(await amos.get_recent_messages("s1", 100)) >= 2
