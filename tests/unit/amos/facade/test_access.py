"""The access list behind the handle: who asks, what a prompt may hold, what a grant to another is worth."""

import pytest
from support.amos import said

from amrita_plugin_memory.amos import ACLDeniedError, AclEntry, AclFile, RetrieveOptions

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


def only(*patterns):
    """A list that lets its owner read these and write everything."""
    reads = tuple(AclEntry(pattern, ("read",), ("owner",)) for pattern in patterns)
    return AclFile("u1", (*reads, AclEntry("**", ("write",), ("owner",))))


async def fill(amos):
    await amos.replace_soul("灵魂")
    await amos.replace_profile("画像")
    await amos.replace_summary("摘要")
    await amos.add_turn("问", "答")
    await amos.add_knowledge("geo", "hangzhou", "西湖边的经济型酒店")


async def prompt(amos, **wish):
    return said(await amos.build_messages("推荐酒店", **wish))


async def test_what_may_not_be_read_is_not_in_the_prompt_either(amos):
    await fill(amos)
    assert (await prompt(amos))[0] == "灵魂\n\n画像\n\n[会话摘要]\n摘要"
    await amos.write_acl(only("sessions/**"))
    assert await prompt(amos) == ["[会话摘要]\n摘要", "问", "答", "推荐酒店"]
    assert said(await amos.build_stable_prefix()) == ["[会话摘要]\n摘要"]
    with pytest.raises(ACLDeniedError):
        await amos.get_profile()


@pytest.mark.parametrize(
    ("granted", "prefix"),
    [
        ("soul.md", "灵魂"),
        ("profile.md", "画像"),
        ("sessions/s1/summary.md", "[会话摘要]\n摘要"),
    ],
)
async def test_each_part_of_the_prefix_is_asked_for_by_itself(amos, granted, prefix):
    await fill(amos)
    await amos.write_acl(only("sessions/s1", granted))
    assert said(await amos.build_stable_prefix()) == [prefix]


async def test_a_user_who_may_not_read_their_soul_speaks_with_the_shared_one(amos):
    await fill(amos)
    await amos.at("system").replace_shared_soul("众人的灵魂")
    await amos.write_acl(only("sessions/s1"))
    assert said(await amos.build_stable_prefix()) == ["众人的灵魂"]


async def test_an_agent_does_not_speak_with_a_soul_of_its_user_that_may_not_be_read(amos):
    await fill(amos)
    await amos.write_acl(only("agents/**"))
    agent = amos.at("u1", "g")
    assert await agent.get_soul() == ""
    assert await agent.build_stable_prefix() == []


async def test_hits_that_may_not_be_read_make_room_for_those_that_may(amos):
    for number in range(12):
        await amos.add_knowledge("secret", f"e{number}", "西湖酒店 酒店 酒店")
    await amos.add_knowledge("geo", "hangzhou", "西湖边有很多别的东西，也有酒店，离车站很远，要走一段路")
    await amos.write_acl(only("sessions/s1", "knowledge/geo/*"))
    found = (await prompt(amos, retrieve_options=RetrieveOptions(top_k=1)))[0]
    assert "knowledge/geo/hangzhou" in found
    assert "secret" not in found


async def test_no_search_shows_a_line_of_what_may_not_be_read(amos):
    for number in range(9):
        await amos.add_knowledge("secret", f"e{number}", "西湖酒店 酒店 酒店")
    await amos.add_knowledge("geo", "hangzhou", "西湖边有很多别的东西，也有酒店，离车站很远，要走一段路")
    await amos.write_acl(only("users/u1", "knowledge/geo/*"))
    for search in (amos.search, amos.search_all):
        found = [hit.path for hit in await search("酒店", 1)]
        assert found == ["users/u1/knowledge/geo/hangzhou.md"]


async def test_a_list_that_changes_the_prefix_changes_its_version(amos):
    await fill(amos)
    version = await amos.cache_version()
    await amos.write_acl(only("sessions/**", "soul.md", "profile.md"))
    assert await amos.cache_version() == version
    await amos.write_acl(only("sessions/**"))
    assert await amos.cache_version() == version + 1
