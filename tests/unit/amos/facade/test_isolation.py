import asyncio
import dataclasses

import pytest
from support.amos import said

from amrita_plugin_memory.amos import ACLDeniedError, AclEntry, AclFile
from amrita_plugin_memory.kernel.errors import InvalidName, NotFound


async def test_a_handle_cannot_be_changed(amos):
    handle = amos.at("u2")
    for name in ("scope", "root", "anything"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
            setattr(handle, name, None)
    assert handle.at(agent="g").scope_name == "u2/g"
    assert handle.scope_name == "u2"


async def test_set_context_replaces_the_default_handle_only(amos):
    old = amos.handle
    other = amos.at("u9")
    assert amos.set_context("u2", None, "s9") == "u2"
    assert (amos.scope.actor, amos.scope.session) == ("u2", "s9")
    assert (old.scope.actor, other.scope.actor) == ("u1", "u9")
    amos.set_context("u3")
    assert amos.scope.session == "s9"


async def test_after_set_context_every_verb_means_the_new_user(amos, tmp_path):
    await amos.replace_profile("of u1")
    await amos.add_turn("s1", "u1 said", "x")
    amos.set_context("u2")
    await amos.replace_profile("of u2")
    assert said(await amos.build_messages("s1", "hi")) == ["of u2", "hi"]
    assert (tmp_path / "root/users/u1/profile.md").read_text() == "of u1"
    assert (tmp_path / "root/users/u2/profile.md").read_text() == "of u2"


async def test_a_call_keeps_the_handle_it_was_made_with(amos):
    turn = amos.add_turn("s1", "of u1", "x")
    profile = amos.replace_profile("of u1")
    amos.set_context("u2")
    await turn
    await profile
    assert await amos.get_recent_messages("s1") == []
    assert said(await amos.at("u1").get_recent_messages("s1")) == ["of u1", "x"]
    assert await amos.at("u1").get_profile() == "of u1"


async def test_users_at_work_at_the_same_time_never_cross(amos):
    async def live(user):
        handle = amos.at(user, None, "s")
        for at in range(5):
            await handle.add_turn(f"{user}-{at}", "ok")
            await handle.append_profile("事实", f"- {user}")
            await asyncio.sleep(0)

    users = [f"user{at}" for at in range(8)]
    await asyncio.gather(*map(live, users))
    for user in users:
        handle = amos.at(user, None, "s")
        assert said(await handle.get_recent_messages())[::2] == [f"{user}-{at}" for at in range(5)]
        assert set((await handle.get_profile()).split("\n")) == {"## 事实", f"- {user}"}


async def test_an_actor_never_sees_one_whose_name_begins_the_same(amos):
    long = amos.at("12345")
    await long.add_knowledge("d", "e", "the best hotel 酒店")
    await long.replace_profile("hotel 酒店")
    await long.add_tag("users/12345/profile.md", "t")
    short = amos.at("1234")
    assert await short.search("hotel 酒店") == []
    assert said(await short.build_messages("s", "hotel 酒店")) == ["hotel 酒店"]
    assert await short.list_by_tag("t") == []
    assert await short.get_knowledge("d", "e") is None


async def test_an_agent_never_sees_another_agents_sessions(amos):
    await amos.at("u1", "a").add_turn("s", "secret hotel", "ok")
    assert await amos.at("u1", "b").search("secret hotel") == []
    assert await amos.at("u1", "b").get_recent_messages("s") == []
    assert await amos.at("u1").list_sessions() == []
    assert await amos.at("u1", "a").list_sessions() == ["s"]


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda h: h.replace_shared_soul("x"), ACLDeniedError),
        (lambda h: h.add_workflow("w", "x", shared=True), ACLDeniedError),
        (lambda h: h.update_workflow("w", "x", shared=True), ACLDeniedError),
        (lambda h: h.delete_workflow("w", shared=True), ACLDeniedError),
        (lambda h: h.add_knowledge("d", "e", "x", shared=True), ACLDeniedError),
        (lambda h: h.delete_knowledge("d", "e", shared=True), ACLDeniedError),
        (lambda h: h.add_tag("shared/workflows/w.md", "t"), ACLDeniedError),
        (lambda h: h.add_tag("users/u2/profile.md", "t"), NotFound),
        (lambda h: h.add_tag("amos://users/u2/profile", "t"), NotFound),
    ],
)
async def test_what_is_everybodys_or_anothers_is_not_changed_by_a_user(amos, act, error):
    await amos.at("system").add_workflow("w", "shared plan", shared=True)
    await amos.at("u2").replace_profile("x")
    with pytest.raises(error):
        await act(amos)
    assert await amos.get_workflow("w") == "shared plan"


async def test_a_users_own_workflow_hides_the_shared_one(amos):
    system = amos.at("system")
    await system.add_workflow("w", "shared", shared=True)
    await system.add_workflow("x", "shared", shared=True)
    await amos.add_workflow("w", "mine")
    assert await amos.get_workflow("w") == "mine"
    assert await amos.list_workflows() == ["w", "x"]
    assert await amos.delete_workflow("w")
    assert await amos.get_workflow("w") == "shared"
    assert not await amos.delete_workflow("x")
    await amos.update_knowledge("d", "e", "mine")
    assert await amos.list_knowledge() == ["d/e"]


DENIED = '{"owner": "u1", "entries": [], "default": {"read": [], "write": [], "execute": []}}'
DOORS = {
    "read": [
        lambda a: a.build_stable_prefix(), lambda a: a.build_messages("x"), lambda a: a.get_recent_messages(), lambda a: a.list_sessions(),
        lambda a: a.list_archives(), lambda a: a.get_summary(), lambda a: a.get_soul(), lambda a: a.get_profile(),
        lambda a: a.get_workflow("w"), lambda a: a.list_workflows(), lambda a: a.get_knowledge("d", "e"), lambda a: a.list_knowledge(),
        lambda a: a.search("x"), lambda a: a.search_all("x"), lambda a: a.search_assets("x"), lambda a: a.list_by_tag("t"), lambda a: a.read_acl(),
        lambda a: a.export_agent("x.amos"), lambda a: a.read("amos://users/u1/profile"), lambda a: a.read("amos://knowledge/d/e"),
    ],
    "write": [
        lambda a: a.add_turn("a", "b"), lambda a: a.delete_turn("x"), lambda a: a.edit_turn("x", user="y"), lambda a: a.delete_session("s1"),
        lambda a: a.compress_session(), lambda a: a.replace_summary("x"), lambda a: a.append_summary_point("x"), lambda a: a.replace_soul("x"),
        lambda a: a.replace_profile("x"), lambda a: a.update_profile("x"), lambda a: a.append_profile("s", "x"), lambda a: a.remove_profile_fact("x"),
        lambda a: a.add_workflow("w", "x"), lambda a: a.update_workflow("w", "x"), lambda a: a.delete_workflow("w"),
        lambda a: a.add_knowledge("d", "e", "x"), lambda a: a.update_knowledge("d", "e", "x"), lambda a: a.delete_knowledge("d", "e"),
        lambda a: a.add_tag("users/u1/acl.json", "t"), lambda a: a.remove_tag("users/u1/acl.json", "t"), lambda a: a.submit_task("t"), lambda a: a.reindex(),
    ],
}  # fmt: skip


LISTS = {"read": {"denied": DENIED}, "write": {"denied": DENIED, "broken": "{broken", "empty": "{}"}}


@pytest.mark.parametrize(("kind", "acl"), [(kind, acl) for kind, lists in LISTS.items() for acl in lists])
async def test_every_door_asks_the_access_list_and_a_broken_one_denies(amos, tmp_path, kind, acl):
    (tmp_path / "root/users/u1/acl.json").write_text(LISTS[kind][acl])
    before = set((tmp_path / "root").rglob("*"))
    for door in DOORS[kind]:
        with pytest.raises(ACLDeniedError):
            await door(amos)
    assert set((tmp_path / "root").rglob("*")) == before


async def test_a_grant_to_another_works(amos):
    own = AclFile(
        "u1", (AclEntry("profile.md", ("read",), ("u2",)),), {"read": ("owner",), "write": ("owner",), "execute": ()}
    )
    await amos.write_acl(own)
    guard = amos.security_manager
    assert await guard.check_permission("users/u1/profile.md", "read", "u2")
    assert not await guard.check_permission("users/u1/profile.md", "write", "u2")
    assert (await amos.read_acl()).owner == "u1"


HOSTILE = ["../../../..", "..", "", ".", "/abs", "a/b", "a\\b", "../profile", "x\0", "con"]


@pytest.mark.parametrize(
    "act",
    [
        lambda a, n: a.add_knowledge(n, "x", "t"), lambda a, n: a.add_knowledge("x", n, "t"), lambda a, n: a.get_knowledge(n, "profile"),
        lambda a, n: a.get_knowledge("d", n), lambda a, n: a.delete_knowledge(n, "x"), lambda a, n: a.delete_knowledge("x", n),
        lambda a, n: a.update_knowledge(n, n, "t"), lambda a, n: a.list_knowledge(n), lambda a, n: a.add_workflow(n, "t"), lambda a, n: a.get_workflow(n),
        lambda a, n: a.update_workflow(n, "t"), lambda a, n: a.delete_workflow(n), lambda a, n: a.add_turn(n, "a", "b"),
        lambda a, n: a.build_messages(n, "hi"), lambda a, n: a.get_recent_messages(n), lambda a, n: a.delete_session(n),
        lambda a, n: a.replace_summary(n, "x"), lambda a, n: a.compress_session(n),
    ],
)  # fmt: skip
async def test_no_verb_takes_a_name_that_leaves_its_place(amos, tmp_path, act):
    await amos.add_knowledge("d", "k", "mine")
    await amos.at("u2").replace_profile("theirs")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for name in HOSTILE:
        with pytest.raises(InvalidName):
            await act(amos, name)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


async def test_deleting_the_last_entry_leaves_other_files_of_the_domain(amos, tmp_path):
    await amos.add_knowledge("d", "e", "x")
    photo = tmp_path / "root/users/u1/knowledge/d/photo.png"
    photo.write_bytes(b"png")
    assert await amos.delete_knowledge("d", "e")
    assert photo.exists()
    photo.unlink()
    await amos.add_knowledge("d", "e", "x")
    await amos.delete_knowledge("d", "e")
    assert not photo.parent.exists()
