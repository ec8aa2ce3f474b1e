from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.kernel.text import clean, cut, inert, is_blank, one_line


@given(st.text())
def test_clean_text_can_be_encoded_and_cleaning_twice_changes_nothing(text):
    once = clean(text)
    once.encode("utf-8")
    assert clean(once) == once


def test_a_lone_surrogate_becomes_a_question_mark():
    assert clean("坏\ud800的") == "坏?的"


def test_invisible_and_direction_marks_go_but_emoji_sequences_stay():
    assert clean("a\u200bb\u202ec\U000e0041") == "abc"
    assert clean("👨‍👩‍👧 ❤️") == "👨‍👩‍👧 ❤️"


def test_control_characters_go_but_tabs_and_line_ends_stay():
    assert clean("a\x00b\tc\r\nd\re\x1b[31m") == "ab\tc\nd\ne[31m"


@given(st.text())
def test_inert_text_cannot_open_or_close_a_block(text):
    assert "<" not in inert(text)
    assert ">" not in inert(text)


def test_text_of_blanks_and_invisible_marks_is_blank():
    assert is_blank(" \n\u200b\u3000")
    assert not is_blank("。")


def test_cut_never_passes_the_limit():
    assert cut("一二三四", 4) == "一二三四"
    assert cut("一二三四五", 4) == "一二三…"
    assert one_line("a\n b\t c") == "a b c"
