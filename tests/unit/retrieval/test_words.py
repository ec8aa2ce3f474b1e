import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.retrieval.words import Lexicon, asked, is_dense, terms

FACTS = ["我对花生过敏", "我喜欢喝乌龙茶", "我养了一只叫豆包的橘猫", "He lives in Hangzhou and likes running"]


def coverage(texts, question):
    return Lexicon.of(texts).coverage(question).tolist()


@pytest.mark.parametrize(
    ("question", "expected"),
    [("花生", 0), ("能不能吃花生", 0), ("猫", 2), ("乌龙茶", 1), ("豆包是谁", 2), ("likes to run", 3), ("HANGZHOU", 3)],
)
def test_the_fact_that_shares_the_words_covers_the_question_best(question, expected):
    found = coverage(FACTS, question)
    assert found.index(max(found)) == expected
    assert max(found) > 0


def test_a_question_that_shares_nothing_is_covered_by_nothing():
    assert coverage(FACTS, "量子物理") == [0.0] * 4
    assert coverage(FACTS, "？！") == [0.0] * 4
    assert coverage([], "花生") == []


@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=30))
def test_coverage_is_a_share(texts, question):
    assert all(0 <= value < 1 for value in coverage(texts, question))


@pytest.mark.parametrize("text", ["カタカナ", "한국어", "Привет", "héllo", "𠀀𠀁", "٣٤٥"])
def test_words_of_every_script_match_themselves(text):
    assert terms(text)
    assert coverage([text, "别的"], text)[0] > 0.3


def test_full_width_and_case_do_not_matter():
    assert terms("ＡＢＣ") == terms("abc")


def test_words_that_only_make_it_a_question_do_not_count_unless_there_are_no_others():
    assert coverage(["他是谁什么时候", "豆包"], "豆包什么时候")[0] < 0.1
    assert asked("豆包什么") == frozenset(["豆", "包", "豆包", "包什"])
    assert asked("what is Hangzhou") == frozenset(terms("Hangzhou"))
    assert coverage(["他是谁", "豆包"], "谁")[0] > 0
    assert asked("what is the who") == frozenset(terms("what is the who"))


@pytest.mark.parametrize(
    "forms",
    [
        "hike hikes hiked hiking",
        "run running runs",
        "party parties",
        "stop stopped stopping",
        "bake baked",
        "dress dresses",
    ],
)
def test_the_forms_of_an_english_word_are_one_term(forms):
    assert len(set(terms(forms))) == 1


@pytest.mark.parametrize("pair", ["bus but", "class clas", "thing th"])
def test_endings_that_are_part_of_a_word_stay(pair):
    assert len(set(terms(pair))) == 2


def test_a_text_is_dense_when_it_is_mainly_written_without_blanks():
    assert is_dense("他喜欢Python吗")
    assert is_dense("カタカナ")
    assert not is_dense("what does 他 like")
    assert not is_dense("")
