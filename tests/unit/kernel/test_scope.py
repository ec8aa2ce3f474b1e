import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.kernel.errors import Forbidden, InvalidInput, InvalidName
from amrita_plugin_memory.kernel.scope import Caller, UniId

accounts = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")


@given(accounts, st.sampled_from(["private", "group"]), st.sampled_from(["platform", "legacy"]))
def test_a_key_of_either_style_reads_back_as_the_same_id(account, kind, style):
    unit = UniId(kind, account)
    assert UniId.parse(unit.key(style)) == unit


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("user_1", "QQPlatform_Private_1"),
        ("group_7", "QQPlatform_Group_7"),
        ("Foo_Private_6", "QQPlatform_Private_6"),
        ("QQPlatform_user_9", "QQPlatform_Private_9"),
        ("user_00012", "QQPlatform_Private_12"),
        ("QQPlatform_Group_55", "QQPlatform_Group_55"),
    ],
)
def test_every_key_the_published_plugin_wrote_is_understood(key, expected):
    assert UniId.parse_old(key).key() == expected


@pytest.mark.parametrize(
    "key", ["user_1\n", " user_1", "QQPlatform_Channel_5", "private_8", "User_9", "user_", "１", ""]
)
def test_what_is_no_key_is_left_alone(key):
    assert UniId.parse_old(key) is None


@pytest.mark.parametrize("account", ["", "../x", "1\n", "a/b", "x" * 41, "-1"])
def test_an_account_that_is_no_plain_name_is_refused(account):
    with pytest.raises(InvalidName):
        UniId.private(account)


def test_an_account_that_is_the_prefix_of_another_is_another_partition():
    assert Caller(UniId.private(1234)).partition("user") != Caller(UniId.private(12345)).partition("user")


def test_group_memory_is_out_of_reach_in_a_private_chat():
    with pytest.raises(InvalidInput, match="不在群聊"):
        Caller(UniId.private(1)).partition("group")
    with pytest.raises(InvalidInput, match="scope"):
        Caller(UniId.private(1)).partition("everything")


@pytest.mark.parametrize(("role", "superuser", "allowed"), [("member", False, False), ("admin", False, True),
                                                             ("owner", False, True), ("member", True, True)])  # fmt: skip
def test_only_group_managers_and_superusers_manage_a_group(role, superuser, allowed):
    caller = Caller(UniId.private(1), UniId.group(2), role=role, superuser=superuser)
    if allowed:
        caller.require_group_manager()
    else:
        with pytest.raises(Forbidden):
            caller.require_group_manager()
