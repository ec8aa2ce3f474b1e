import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.retrieval.words import Lexicon, terms

FACTS = ["我对花生过敏", "我喜欢喝乌龙茶", "我养了一只叫豆包的橘猫", "He lives in Hangzhou and likes running"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [("花生", 0), ("能不能吃花生", 0), ("猫", 2), ("乌龙茶", 1), ("豆包是谁", 2), ("likes to run", 3), ("HANGZHOU", 3)],
)
def test_the_fact_that_shares_the_words_covers_the_question_best(question, expected):
    coverage = Lexicon.of(FACTS).coverage(question)
    assert coverage.index(max(coverage)) == expected
    assert max(coverage) > 0


def test_a_question_that_shares_nothing_is_covered_by_nothing():
    assert Lexicon.of(FACTS).coverage("量子物理") == [0.0] * 4
    assert Lexicon.of(FACTS).coverage("？！") == [0.0] * 4
    assert Lexicon.of([]).coverage("花生") == []


@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=30))
def test_coverage_is_a_share(texts, question):
    assert all(0 <= value < 1 for value in Lexicon.of(texts).coverage(question))


@pytest.mark.parametrize("text", ["カタカナ", "한국어", "Привет", "héllo", "𠀀𠀁", "٣٤٥"])
def test_words_of_every_script_match_themselves(text):
    assert terms(text)
    assert Lexicon.of([text, "别的"]).coverage(text)[0] > 0.3


def test_full_width_and_case_do_not_matter():
    assert terms("ＡＢＣ") == terms("abc")
