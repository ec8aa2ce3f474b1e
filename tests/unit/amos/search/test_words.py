from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.search import query, rank, words


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("Hotel_Rooms", ("hotel", "room")),
        ("カタカナ", ("カ", "タ", "カ", "ナ")),
        ("한국어", ("한", "국", "어")),
        ("Привет мир", ("привет", "мир")),
        ("café", ("cafe",)),
        ("😀开心👍🏽", ("😀", "开", "心", "👍")),
        ("\u3400\U00020000", ("\u3400", "\U00020000")),
        ("หมา", ("ห", "ม", "า")),
        ("नमस्ते", ("नमस्ते",)),
        ("ＡＢＣ１２", ("abc12",)),
    ],
)
def test_words_of_every_script_are_found(text: str, units: tuple[str, ...]) -> None:
    assert words.split(text).units == units


def test_neighbours_of_solid_scripts_are_pairs_and_do_not_cross_a_blank() -> None:
    assert words.split("去杭州 西湖").pairs == ("去杭", "杭州", "西湖")


@given(st.text(max_size=200))
def test_no_word_can_break_out_of_an_expression(text: str) -> None:
    found = words.split(text)
    assert all(
        word and '"' not in word and not word.isspace() and " " not in word for word in found.units + found.pairs
    )


@given(st.text(max_size=200))
def test_a_text_is_split_the_same_way_after_folding(text: str) -> None:
    assert words.split(words.fold(text)) == words.split(text)


def test_a_plural_meets_its_singular_and_short_words_stay() -> None:
    assert words.stem("hotels") == words.stem("hotel") == "hotel"
    assert [words.stem(word) for word in ("bus", "glass", "this", "as")] == ["bus", "glass", "this", "as"]


def test_a_sentence_is_asked_by_its_telling_pairs() -> None:
    asked = query.parse("推荐一下杭州的酒店")
    assert {"杭州", "酒店", "推荐"} <= set(asked.strong)
    assert not any("的" in term for term in asked.strong)


def test_quotes_of_three_kinds_mark_phrases() -> None:
    assert query.parse('a "x y" “西湖” 「醋鱼」', ["z"]).phrases == ("x y", "西湖", "醋鱼", "z")


def test_a_query_of_fillers_alone_is_still_asked() -> None:
    assert query.parse("的").strong == ("的",)
    assert query.parse("the").strong == ("the",)


def test_a_long_question_is_bounded() -> None:
    assert len(query.parse(" ".join(f"w{i}x" for i in range(900))).strong) <= query.MAX_TERMS


def test_one_word_in_a_text_of_usual_length_scores_at_least_one() -> None:
    piece = rank.Candidate("a b", "", "a b", "")
    score, found = rank.score(query.parse("b zz"), piece, rank.Corpus(1, {"b": 1}, 2.0))
    assert score >= 1
    assert found == ("b",)


def test_a_rare_word_outweighs_a_common_one() -> None:
    corpus = rank.Corpus(100, {"rare": 1, "common": 90}, 1.0)
    rare = rank.score(query.parse("rare"), rank.Candidate("", "", "rare", ""), corpus)[0]
    common = rank.score(query.parse("common"), rank.Candidate("", "", "common", ""), corpus)[0]
    assert rare > 2 * common


def test_the_snippet_shows_the_place_that_was_found() -> None:
    text = "开头" * 200 + "西湖醋鱼" + "结尾" * 200
    shown = rank.snippet(text, ("醋鱼",))
    assert "西湖醋鱼" in shown
    assert shown.startswith("...")
    assert shown.endswith("...")
    assert len(shown) < 200
