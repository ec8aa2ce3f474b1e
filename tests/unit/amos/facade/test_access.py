"""The access list behind the handle: who asks, what a prompt may hold, what a grant to another is worth."""

import pytest

from amrita_plugin_memory.amos import ACLDeniedError, AclEntry, AclFile

EVERYTHING = ("read", "write", "execute")


async def test_the_security_manager_asks_for_the_user_of_its_handle(amos):
    grab = AclFile("u1", (AclEntry("**", EVERYTHING, ("u2",)),))
    amos.set_context("u2")
    assert amos.security_manager.current_actor == "u2"
    for theirs in (amos.security_manager, amos.at("u3").security_manager):
        with pytest.raises(ACLDeniedError):
            await theirs.write_user_acl("u1", grab)
        assert not await theirs.check_permission("users/u1/profile.md", "read")
        with pytest.raises(ACLDeniedError):
            await theirs.write_global_acl(AclFile("system"))
    assert await amos.at("u1").read_acl() is None


async def test_the_list_a_handle_writes_counts_for_every_handle_at_once(amos):
    first, second = amos.security_manager, amos.at("u2").security_manager
    assert not await second.check_permission("users/u1/profile.md", "read")
    await first.write_user_acl("u1", AclFile("u1", (AclEntry("profile.md", ("read",), ("u2",)),)))
    assert await second.check_permission("users/u1/profile.md", "read")
    assert first.current_actor == "u1"
