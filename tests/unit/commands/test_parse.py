import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.commands import Request, parse
from amrita_plugin_memory.kernel.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("", Request("status")),
        ("user list", Request("list")),
        ("group list 3", Request("list", "group", page=3)),
        ("list", Request("list")),
        ("user", Request("list")),
        ("group", Request("list", "group")),
        ("USER  Search  黑 咖啡", Request("search", words="黑 咖啡")),
        ("search 茶", Request("search", words="茶")),
        ("group delete a1f3 b2c4，c3d5", Request("delete", "group", ids=("a1f3", "b2c4", "c3d5"))),
        ("delete a1f3", Request("delete", ids=("a1f3",))),
        ("列表", Request("list")),
        ("群 搜索 发版", Request("search", "group", words="发版")),
        ("memo", Request("memo")),
        ("备忘录", Request("memo")),
        ("list 第2页", Request("list", page=2)),
        ("help", Request("help")),
    ],
)
def test_the_whole_grammar_is_understood(text, request_):
    assert parse(text) == request_


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("bogus", "help"),
        ("user bogus", "help"),
        ("search", "要找什么"),
        ("group search  ", "group search"),
        ("delete", "编号"),
        ("list ²", "页码"),
        ("list 0", "页码"),
        ("list -1", "页码"),
        ("delete " + " ".join(f"{i:04x}" for i in range(21)), "20"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text, why):
    with pytest.raises(InvalidInput, match=why) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_request_or_a_sentence(text):
    try:
        parse(text)
    except InvalidInput as e:
        assert str(e)
