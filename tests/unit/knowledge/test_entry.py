import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.knowledge.entry import Entry, checked, from_text, lines_of, spliced, to_text, window

texts = st.text(max_size=80)


@given(texts, texts, texts)
def test_whatever_is_accepted_reads_back_as_it_was(title, summary, body):
    try:
        parts = checked(title, summary, body, max_body=1000)
    except InvalidInput:
        return
    entry = Entry("abcd1234", *parts)
    assert from_text("abcd1234", to_text(entry)) == entry


def test_a_rule_inside_the_summary_parts_nothing():
    title, summary, body = checked("标题\n第二行", "一\n---\n二", "三\n---\n四", max_body=100)
    entry = from_text("k", to_text(Entry("k", title, summary, body)))
    assert (entry.title, entry.summary, entry.body) == ("标题 第二行", "一\n—\n二", "三\n---\n四")


def test_a_file_of_the_published_plugin_is_read():
    entry = from_text("ab12cd34", "# 部署\n何时用\n---\n第一步\n\n第二步\n")
    assert entry == Entry("ab12cd34", "部署", "何时用", "第一步\n\n第二步")


@pytest.mark.parametrize(
    ("title", "summary", "body", "why"),
    [("", "s", "b", "标题"), ("t", " ", "b", "摘要"), ("t", "s", "x" * 101, "101 字")],
)
def test_unusable_parts_are_refused(title, summary, body, why):
    with pytest.raises(InvalidInput, match=why):
        checked(title, summary, body, max_body=100)


@given(
    st.lists(st.text("ab", max_size=2), max_size=6),
    st.integers(-3, 9),
    st.integers(-3, 9),
    st.lists(st.text("c", min_size=1, max_size=1), max_size=3),
)
def test_a_splice_replaces_exactly_the_window(lines, start, end, new):
    text = "\n".join(lines)
    had = lines_of(text)
    shown = window(text, start, end)
    changed = lines_of(spliced(text, new, start, end))
    expected = [*had[: shown.start], *new, *had[shown.end :]]
    assert changed == expected or "\n".join(changed) == "\n".join(expected)
    assert list(shown.lines) == had[shown.start : shown.end]


def test_without_bounds_new_lines_are_appended():
    assert spliced("l0\nl1", ["X"], None, None) == "l0\nl1\nX"
    assert spliced("", ["X"], None, None) == "X"
    assert spliced("l0\nl1\nl2", ["X"], 1, 2) == "l0\nX\nl2"
    assert spliced("l0\nl1\nl2", [], 0, 3) == ""
