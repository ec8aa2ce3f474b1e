"""Texts before they are embedded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.embedding.texts import chunks, prepare
from amrita_plugin_memory.kernel.errors import InvalidInput

_ANY = st.text(st.characters(exclude_categories=()), max_size=30)


@given(st.lists(_ANY, max_size=5), st.integers(1, 20))
def test_prepared_texts_can_be_encoded_are_bounded_and_never_blank(texts: list[str], limit: int) -> None:
    try:
        prepared = prepare(texts, limit)
    except InvalidInput:
        return
    assert len(prepared.texts) == len(texts)
    for text in prepared.texts:
        text.encode("utf-8")
        assert "\x00" not in text
        assert 0 < len(text) <= limit


def test_how_many_were_cut_is_told() -> None:
    prepared = prepare(["短", "长" * 11, "刚好" * 5], 10)
    assert prepared.cut == 1
    assert [len(t) for t in prepared.texts] == [1, 10, 10]


def test_a_bare_string_is_not_taken_for_a_list_of_characters() -> None:
    with pytest.raises(InvalidInput, match="单个字符串"):
        prepare("你好", 10)


@given(st.lists(st.text(max_size=20), max_size=20), st.integers(1, 5), st.none() | st.integers(1, 30))
def test_chunks_keep_order_and_bounds(texts: list[str], size: int, chars: int | None) -> None:
    pieces = list(chunks(texts, size, chars=chars))
    assert [t for piece in pieces for t in piece] == texts
    for piece in pieces:
        assert 1 <= len(piece) <= size
        assert chars is None or len(piece) == 1 or sum(map(len, piece)) <= chars
