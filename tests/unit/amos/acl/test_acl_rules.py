from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.acl import AclEntry, AclFile, SecurityManager, rules
from amrita_plugin_memory.amos.errors import ACLDeniedError
from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.kernel.errors import InvalidInput


@pytest.mark.parametrize(
    ("pattern", "resource", "meets"),
    [
        ("assets/tools/*", "assets/tools/x", True),
        ("assets/tools/*", "assets/tools_evil/x", False),
        ("assets/tools/*", "assets/tools", False),
        ("assets/tools/*", "assets/tools/x/y", False),
        ("assets/tools/**", "assets/tools/x/y", True),
        ("assets/**/code.py", "assets/tools/x/code.py", True),
        ("**", "anything/at/all", True),
        ("profile*", "profile.md", True),
        ("profile*", "profile/x", False),
        ("assets/tools/we*er", "assets/tools/weather", True),
        ("profile.md", "profile.md", True),
        ("profile.md", "profileXmd", False),
        ("a[b]", "a[b]", True),
        ("a[b]", "ab", False),
    ],
)
def test_patterns_are_compared_component_by_component(pattern: str, resource: str, meets: bool) -> None:
    assert rules.matches(pattern, resource) is meets


@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4))
def test_a_path_without_stars_meets_itself_and_nothing_longer(parts: list[str]) -> None:
    path = "/".join(parts)
    assert rules.matches(path, path)
    assert not rules.matches(path, path + "/x")
    assert rules.matches("**", path)


class Gate:
    def __init__(self, folder: Path, author: str = "system") -> None:
        self.files = FileRoot.open(folder, sync=False)
        self.acl = SecurityManager(self.files, manifest_author=author)

    def user(self, actor: str, text: object) -> None:
        self._put(f"users/{actor}/acl.json", text)

    def everyone(self, text: object) -> None:
        self._put("acl/global.acl.json", text)

    def _put(self, path: str, text: object) -> None:
        self.files.write_text(PurePosixPath(path), text if isinstance(text, str) else json.dumps(text))

    async def may(self, actor: str, action: str, resource: str) -> bool:
        return await self.acl.check_permission(resource, action, actor)  # type: ignore[arg-type]


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


def acl(owner: str, *entries: dict[str, object], **default: list[str]) -> dict[str, object]:
    return {"owner": owner, "entries": list(entries), "default": {"read": [], "write": [], "execute": [], **default}}


def entry(resource: str, allow: list[str], actors: list[str]) -> dict[str, object]:
    return {"resource": resource, "allow": allow, "actors": actors}


async def test_without_any_list_the_owner_reads_and_writes_and_nobody_executes(gate: Gate) -> None:
    assert await gate.may("u1", "read", "profile.md")
    assert await gate.may("u1", "write", "users/u1/profile.md")
    assert not await gate.may("u1", "execute", "assets/tools/x")
    assert not await gate.may("u2", "read", "users/u1/profile.md")
    assert await gate.may("u1", "read", "shared/soul.md")
    assert not await gate.may("u1", "write", "shared/soul.md")
    assert await gate.may("system", "write", "shared/soul.md")


async def test_an_owner_can_grant_to_another(gate: Gate) -> None:
    gate.user("u1", acl("u1", entry("knowledge/geo/*", ["read"], ["u2"]), read=["owner"], write=["owner"]))
    assert await gate.may("u2", "read", "users/u1/knowledge/geo/x.md")
    assert not await gate.may("u2", "write", "users/u1/knowledge/geo/x.md")
    assert not await gate.may("u2", "read", "users/u1/profile.md")
    assert not await gate.may("u3", "read", "users/u1/knowledge/geo/x.md")


async def test_a_users_own_list_decides_over_the_global_one(gate: Gate) -> None:
    gate.everyone(acl("system", entry("assets/tools/*", ["execute"], ["*"])))
    assert await gate.may("u1", "execute", "assets/tools/x")
    gate.user("u1", acl("u1", read=["owner"]))
    assert not await gate.may("u1", "execute", "assets/tools/x")
    assert not await gate.may("u1", "write", "profile.md")
    assert await gate.may("u1", "read", "profile.md")


async def test_a_global_list_of_the_reference_does_not_lock_owners_out(gate: Gate) -> None:
    gate.everyone(acl("system", entry("assets/tools/*", ["execute"], ["*"])))
    assert await gate.may("u1", "write", "profile.md")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"owner": 1}', '{"owner":"u1","entries":[{"resource":"**"}]}'])
async def test_a_broken_list_leaves_the_owner_reading_and_denies_the_rest(gate: Gate, text: str) -> None:
    gate.everyone(acl("system", entry("**", ["read", "write", "execute"], ["*"])))
    gate.user("u1", text)
    assert await gate.may("u1", "read", "profile.md")
    assert not await gate.may("u1", "write", "profile.md")
    assert not await gate.may("u2", "read", "users/u1/profile.md")
    assert not await gate.may("u1", "execute", "assets/tools/x")


async def test_a_broken_global_list_denies_all_but_owners_reading(gate: Gate) -> None:
    gate.everyone("{")
    assert await gate.may("u1", "read", "profile.md")
    assert not await gate.may("u1", "write", "profile.md")
    assert not await gate.may("system", "write", "shared/soul.md")


async def test_a_list_behind_a_link_is_not_believed(gate: Gate, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-acl.json"
    outside.write_text(json.dumps(acl("u1", execute=["*"])))
    (tmp_path / "users/u1").mkdir(parents=True)
    (tmp_path / "users/u1/acl.json").symlink_to(outside)
    assert not await gate.may("u1", "execute", "assets/tools/x")


async def test_the_words_for_actors_are_no_names(gate: Gate) -> None:
    gate.user("u1", acl("u1", execute=["owner", "system"]))
    assert await gate.may("u1", "execute", "assets/tools/x")
    assert not await gate.may("owner", "execute", "users/u1/assets/tools/x")
    assert await gate.may("system", "execute", "users/u1/assets/tools/x")


async def test_an_actor_called_system_is_it_only_when_the_manifest_says_so(tmp_path: Path) -> None:
    gate = Gate(tmp_path, author="alice")
    assert not await gate.may("system", "write", "shared/soul.md")
    assert await gate.may("alice", "write", "shared/soul.md")


async def test_ids_that_begin_alike_are_strangers(gate: Gate) -> None:
    assert not await gate.may("1234", "read", "users/12345/profile.md")
    gate.user("12345", acl("12345", entry("**", ["read"], ["1234"])))
    assert await gate.may("1234", "read", "users/12345/profile.md")
    assert not await gate.may("123", "read", "users/12345/profile.md")


async def test_only_the_owner_and_the_system_change_a_list(gate: Gate) -> None:
    mine = AclFile("u1", (AclEntry("assets/tools/*", ("execute",), ("u1",)),), {"read": ("owner",)})
    with pytest.raises(ACLDeniedError):
        await gate.acl.write_user_acl("u1", mine, by="u2")
    with pytest.raises(InvalidInput):
        await gate.acl.write_user_acl("u1", AclFile("u2"), by="u1")
    await gate.acl.write_user_acl("u1", mine, by="u1")
    assert await gate.may("u1", "execute", "assets/tools/x")
    await gate.acl.write_user_acl("u1", AclFile("u1"), by="system")
    assert not await gate.may("u1", "execute", "assets/tools/x")
    with pytest.raises(ACLDeniedError):
        await gate.acl.write_global_acl(mine, by="u1")


async def test_a_written_list_has_exactly_the_reference_keys(gate: Gate) -> None:
    await gate.acl.write_user_acl("u1", AclFile("u1", (AclEntry("x", ("read",), ("u2",)),)), by="u1")
    data = json.loads((gate.files.root / "users/u1/acl.json").read_text())
    assert set(data) == {"owner", "entries", "default"}
    assert set(data["entries"][0]) == {"resource", "allow", "actors"}


async def test_a_changed_list_counts_at_once(gate: Gate) -> None:
    assert not await gate.may("u1", "execute", "assets/tools/x")
    gate.user("u1", acl("u1", execute=["owner"]))
    assert await gate.may("u1", "execute", "assets/tools/x")
    gate.user("u1", acl("u1"))
    assert not await gate.may("u1", "execute", "assets/tools/x")


@pytest.mark.parametrize("resource", ["../x", "a//b", "", "a/../b", "users/u1/../u2/profile.md"])
async def test_a_resource_that_leaves_its_place_is_refused(gate: Gate, resource: str) -> None:
    with pytest.raises(InvalidInput):
        await gate.may("u1", "read", resource)


async def test_an_unknown_action_is_refused(gate: Gate) -> None:
    with pytest.raises(InvalidInput):
        await gate.may("u1", "delete", "profile.md")


async def test_a_denial_is_one_sentence(gate: Gate) -> None:
    with pytest.raises(ACLDeniedError, match="没有权限执行"):
        await gate.acl.assert_permission("assets/tools/x", "execute", "u1")
