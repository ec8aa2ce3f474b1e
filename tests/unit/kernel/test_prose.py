from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.kernel.prose import find_objects, first_object


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": "}"}',
        '好的，结果如下：\n```json\n{"a": 1, "b": "}"}\n```\n希望有帮助 {笑}',
        'Sure! {"a": 1, "b": "}",} Hope it helps.',
        '{broken} {"a": 1, "b": "}"}',
        "“结果”：{“a”：1，“b”：“}”}",
        '{"a": 1,\n "b": "}"}   {"c": 2}',
    ],
)
def test_an_object_is_found_in_whatever_stands_around_it(text: str) -> None:
    assert first_object(text) == {"a": 1, "b": "}"}


@pytest.mark.parametrize("text", ["", "没有", "[1, 2]", "{", "}{", '{"a": ', None, 5, "{" * 5000, '{"a":' * 3000])
def test_where_there_is_none_none_is_found(text: object) -> None:
    assert first_object(text) is None


objects = st.dictionaries(
    st.text(max_size=8),
    st.recursive(st.none() | st.integers() | st.text(max_size=8), lambda x: st.lists(x, max_size=3), max_leaves=6),
    min_size=1,
    max_size=4,
)


@given(objects, st.text(st.characters(exclude_characters="{}“”：，"), max_size=30), st.text(max_size=30))
def test_any_object_survives_any_prose(value: dict[str, object], before: str, after: str) -> None:
    assert next(find_objects(before + json.dumps(value, ensure_ascii=False) + after)) == value


@given(st.text())
def test_no_text_makes_the_reader_fail(text: str) -> None:
    list(find_objects(text))
