"""Nothing but finite unit rows of one dimension leaves vectors.py."""

from __future__ import annotations

import base64
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.embedding.vectors import BadVectors, unit_rows

_NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(max_size=4) | st.integers(),
    lambda inner: st.lists(inner, max_size=10) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=30,
)


@given(
    st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(_NUMBERS, min_size=8, max_size=8), min_size=n, max_size=n))
)
def test_any_rows_of_numbers_become_unit_rows_or_are_refused(raw: list[list[float]]) -> None:
    try:
        rows = unit_rows(raw, count=len(raw))
    except BadVectors as bad:
        assert any(not all(map(math.isfinite, row)) or max(map(abs, row)) < 1e-11 for row in raw), bad
    else:
        assert rows.shape == (len(raw), 8)
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


@given(_JSON, st.integers(0, 3))
def test_any_json_is_unit_rows_or_refused_with_a_sentence(raw: object, count: int) -> None:
    try:
        rows = unit_rows(raw, count=count)
    except BadVectors as bad:
        assert "，请" in str(bad)
    else:
        assert rows.shape[0] == count
        assert np.isfinite(rows).all()


def test_base64_is_little_endian_float32() -> None:
    row = np.array([3, 4, 0, 0, 0, 0, 0, 0], dtype="<f4")
    rows = unit_rows([base64.b64encode(row.tobytes()).decode()], count=1)
    assert np.allclose(rows[0][:2], [0.6, 0.8])


@pytest.mark.parametrize("text", ["!!!", "AAA", "AAAAAAA=", "你好"])
def test_a_string_that_is_no_base64_vector_is_refused(text: str) -> None:
    with pytest.raises(BadVectors):
        unit_rows([text], count=1)


def test_an_expected_dimension_is_insisted_on() -> None:
    with pytest.raises(BadVectors, match="8 维，应为 16 维"):
        unit_rows([[1.0] * 8], count=1, dimension=16)
