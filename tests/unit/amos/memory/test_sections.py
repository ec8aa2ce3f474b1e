import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.memory.sections import add_to_section, remove_facts, replace_section, value_of

line = st.text("ab#：:- ", max_size=8)
texts = st.lists(line, max_size=8).map("\n".join)
title = st.text("abAB 杭", min_size=1, max_size=4).map(str.strip).filter(bool)


def test_content_goes_directly_below_its_heading_newest_first():
    text = add_to_section("# 画像\n\n## 偏好\n- 旧\n\n## 其他\n- x", "偏好", "- 新")
    assert text == "# 画像\n\n## 偏好\n- 新\n- 旧\n\n## 其他\n- x"


def test_a_missing_heading_is_added_at_the_end():
    assert add_to_section("# 画像\n- a\n\n", "偏好", "- b") == "# 画像\n- a\n\n## 偏好\n- b"
    assert add_to_section("", "### 深", "- b") == "### 深\n- b"


def test_a_heading_is_compared_whole():
    assert add_to_section("## AB\n- x", "A", "- y") == "## AB\n- x\n\n## A\n- y"


def test_a_heading_inside_a_code_fence_is_text():
    text = "```\n## A\n```\n## A\nold"
    assert replace_section(text, "## A", "new") == "```\n## A\n```\n## A\nnew"


@given(texts, title, st.text("xyz", min_size=1, max_size=5))
def test_adding_keeps_every_line_that_was_there(text, section, content):
    after = add_to_section(text, section, content).split("\n")
    assert content in after
    for old in text.split("\n"):
        assert not old.strip() or old in after


def test_removing_takes_whole_lines_and_never_a_heading():
    assert remove_facts("## 咖啡\n- 爱喝咖啡\n- 爱喝茶", "咖啡") == ("## 咖啡\n- 爱喝茶", 1)


@given(texts, st.text("ab", min_size=1, max_size=2))
def test_after_removing_only_headings_hold_the_keyword(text, keyword):
    after, count = remove_facts(text, keyword)
    assert len(text.split("\n")) - len(after.split("\n")) == count or (after == "" and count == len(text.split("\n")))
    assert all(line.strip().startswith("#") for line in after.split("\n") if keyword in line)


@pytest.mark.parametrize(
    ("text", "section", "wanted"),
    [
        ("## A\n1\n## AB\n2", "## A", "## A\nN\n\n## AB\n2"),
        ("## A\n1\n### sub\n2\n## B\n3", "## A", "## A\nN\n\n## B\n3"),
        ("# T\n## A\n1\n# U\n2", "A", "# T\n## A\nN\n\n# U\n2"),
        ("## A\n1\n", "A", "## A\nN\n"),
        ("### A\n1\n## A\n2", "## A", "### A\n1\n## A\nN"),
    ],
)
def test_a_section_is_replaced_with_what_is_nested_in_it(text, section, wanted):
    assert replace_section(text, section, "N") == wanted


def test_content_that_begins_with_the_heading_does_not_double_it():
    assert replace_section("## A\n1", "A", "## A\n2") == "## A\n2"


def test_a_section_that_is_not_there_is_told():
    assert replace_section("## AB\n1", "A", "N") is None


@given(texts, title, st.text("xyz", min_size=1, max_size=5))
def test_replacing_leaves_the_other_sections_alone(text, section, content):
    whole = f"## other\nkeep\n\n## {section}q\nold\n\n## last\n{text}"
    after = replace_section(whole, f"## {section}q", content)
    assert after.startswith(f"## other\nkeep\n\n## {section}q\n{content}\n")
    assert after.endswith(f"## last\n{text}")


@pytest.mark.parametrize(
    ("text", "value"),
    [("称呼: 小王", "小王"), ("- 称呼：小王", "小王"), ("x: 1", ""), ("称呼", ""), ("称呼: \n称呼: 小王", "")],
)
def test_a_value_is_found_by_its_key(text, value):
    assert value_of(text, "称呼") == value
