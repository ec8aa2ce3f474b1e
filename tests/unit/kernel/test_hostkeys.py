from amrita_plugin_memory.kernel.hostkeys import key_trouble
from amrita_plugin_memory.kernel.scope import UniId


def test_a_host_that_forms_keys_as_we_do_is_no_trouble():
    assert (
        key_trouble(lambda account, is_group: (UniId.group(account) if is_group else UniId.private(account)).key())
        is None
    )


def test_a_host_that_forms_them_otherwise_is_told_in_one_sentence():
    told = key_trouble(lambda account, is_group: f"{'group' if is_group else 'user'}_{account}")
    assert told is not None
    assert "user_1" in told
    assert "QQPlatform_Private_1" in told


def test_a_host_that_differs_for_groups_only_is_told_too():
    told = key_trouble(lambda account, is_group: "Group1" if is_group else UniId.private(account).key())
    assert told is not None
    assert "QQPlatform_Group_1" in told
