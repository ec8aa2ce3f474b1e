from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.facts.fact import Fact, from_row, to_row
from amrita_plugin_memory.facts.rules import (
    checked_content,
    checked_question,
    checked_tags,
    resolve,
    same_text,
    short_ids,
)
from amrita_plugin_memory.kernel.errors import Ambiguous, InvalidInput, NotFound
from amrita_plugin_memory.vectordb.ports import Row

hexes = st.text("0123456789abcdef", min_size=32, max_size=32)


@given(st.lists(hexes, min_size=1, max_size=30, unique=True))
def test_every_short_id_names_its_own_fact(ids):
    for whole, short in short_ids(ids).items():
        assert resolve(short, ids) == whole
        assert resolve(f"#{short.upper()}", ids) == whole


def test_ids_that_share_a_beginning_get_as_many_characters_as_it_takes():
    assert short_ids(["a" * 32, "a" * 20 + "b" * 12]) == {"a" * 32: "a" * 21, "a" * 20 + "b" * 12: "a" * 20 + "b"}


def test_an_id_that_names_none_or_several_is_refused():
    ids = ["abcd1" + "0" * 27, "abcd2" + "0" * 27]
    with pytest.raises(Ambiguous, match="2 条"):
        resolve("abcd", ids)
    for wrong in ("abc", "", "ffff", "#", "abcd1" + "1" * 27):
        with pytest.raises(NotFound):
            resolve(wrong, ids)


@pytest.mark.parametrize("content", ["", " \n\t", "\u200b", "\x00"])
def test_blank_content_is_refused(content):
    with pytest.raises(InvalidInput, match="为空"):
        checked_content(content)


def test_content_is_cleaned_and_bounded():
    assert checked_content(" 我\x00是\ud800 ") == "我是?"
    with pytest.raises(InvalidInput, match="2001 字"):
        checked_content("字" * 2001)


@pytest.mark.parametrize(
    ("given_tags", "stored"),
    [("a，b、a;c", "a,b,c"), (["x", "y"], "x,y"), ("#饮食, ,  #健康 ", "饮食,健康"), ("", "")],
)
def test_tags_become_one_plain_list(given_tags, stored):
    assert checked_tags(given_tags) == stored


def test_the_same_text_in_other_case_and_spacing_counts_as_the_same():
    assert same_text("I  like\nTea") == same_text("i like tea")


def test_a_fact_reads_back_from_its_row():
    fact = Fact("1" * 32, "茶", "QQPlatform_Group_7", "group", "a", "high", "2026-01-01T00:00:00+00:00", author="u")
    assert from_row(to_row(fact, None)) == fact


def test_a_row_of_an_older_version_gets_plain_defaults():
    fact = from_row(Row("x", "内容", {"user_id": "group_5"}))
    assert (fact.scope, fact.importance, fact.tags, fact.created, fact.day) == ("group", "medium", "", None, "")


def test_a_question_is_cut_instead_of_refused_and_says_its_own_words_when_blank():
    assert checked_question(" 花生 ") == "花生"
    assert len(checked_question("长" * 5_000)) == 2_000
    with pytest.raises(InvalidInput, match="要找什么"):
        checked_question("\u200b \n")


def test_the_day_of_a_fact_is_the_owners_day(monkeypatch):
    monkeypatch.setattr("amrita_plugin_memory.facts.fact.local_zone", lambda: timezone(timedelta(hours=8)))
    late = from_row(Row("a", "x", {"user_id": "QQPlatform_Private_1", "created_at": "2026-11-29T17:30:00+00:00"}))
    assert late.day == "2026-11-30"
