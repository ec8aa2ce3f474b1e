"""`read`: the one verb that reaches another user's file, when that user's list lets it."""

import pytest

from amrita_plugin_memory.amos import ACLDeniedError, AclEntry, AclFile
from amrita_plugin_memory.amos.errors import MemoryURIError
from amrita_plugin_memory.kernel.errors import InvalidInput, InvalidName

OWN = {"read": ("owner",), "write": ("owner",), "execute": ("owner",)}
PROFILE = "amos://users/u1/profile"


async def test_a_grant_lets_another_user_read_just_that_file(amos):
    await amos.replace_profile("画像")
    await amos.replace_soul("灵魂")
    await amos.write_acl(AclFile("u1", (AclEntry("profile.md", ("read",), ("u2",)),), OWN))
    assert await amos.at("u2").read(PROFILE) == "画像"
    for other, uri in (("u2", "amos://users/u1/soul"), ("u3", PROFILE), ("u2", "amos://users/u1/acl")):
        with pytest.raises(ACLDeniedError):
            await amos.at(other).read(uri)
    assert await amos.read("amos://users/u1/soul") == "灵魂"


async def test_without_a_grant_nothing_of_another_is_read_and_not_even_that_it_is_there(amos):
    await amos.replace_profile("画像")
    for uri in (PROFILE, "amos://users/u1/sessions/s1/messages", "amos://users/nobody/profile"):
        with pytest.raises(ACLDeniedError):
            await amos.at("u2").read(uri)


async def test_a_grant_that_is_taken_back_is_over(amos):
    await amos.replace_profile("画像")
    await amos.write_acl(AclFile("u1", (AclEntry("**", ("read",), ("*",)),), OWN))
    assert await amos.at("u2").read(PROFILE) == "画像"
    await amos.write_acl(AclFile("u1", (), {"read": (), "write": ("owner",), "execute": ()}))
    for user in ("u1", "u2"):
        with pytest.raises(ACLDeniedError):
            await amos.at(user).read(PROFILE)


async def test_a_short_address_means_the_users_own_before_the_shared_one(amos):
    await amos.at("system").add_knowledge("d", "e", "共享", shared=True)
    assert await amos.read("amos://knowledge/d/e") == "共享"
    await amos.add_knowledge("d", "e", "自己的")
    assert await amos.read("amos://knowledge/d/e") == "自己的"
    assert await amos.read("amos://shared/knowledge/d/e") == "共享"
    assert await amos.read("amos://knowledge/d/nothing") is None


async def test_an_asset_is_read_by_its_definition(amos):
    await amos.create_asset("tool", "w", "# 天气", {"code.py": "output = 1"})
    assert "天气" in await amos.read("amos://assets/tool/w")
    await amos.write_acl(AclFile("u1", (AclEntry("assets/tools/w", ("read",), ("u2",)),), OWN))
    assert "天气" in await amos.at("u2").read("amos://users/u1/assets/tool/w")


async def test_a_user_whose_name_is_a_folder_of_the_protocol_is_read_like_any_other(amos):
    user = amos.at("assets")
    await user.add_workflow("w", "计划")
    assert await user.read("amos://users/assets/workflows/w") == "计划"


async def test_only_addresses_of_the_protocol_are_read(amos):
    wrong = ["users/u1/profile.md", "", "amos://", "amos://cache_version.txt", "file:///etc/passwd"]
    for uri in wrong:
        with pytest.raises(MemoryURIError):
            await amos.read(uri)
    for uri in ("amos://knowledge/../profile", "amos://users/../soul", "amos://knowledge/d/%2e%2e"):
        with pytest.raises((InvalidName, MemoryURIError)):
            await amos.read(uri)
    with pytest.raises((InvalidInput, ACLDeniedError)):
        await amos.read("amos://tasks/pending/1")
