"""What comes back from a model, checked before anybody may store or compare it.

Pure: values in, values out. A vector that is empty, short, zero, NaN or infinite never leaves this file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable

from .ports import Matrix

_Row: TypeAlias = NDArray[np.float64]
MIN_DIMENSION: Final = 8  # no text model has fewer; below it the answer is a broken one
_SMALLEST_NORM: Final = 1e-12


class BadVectors(EmbeddingUnavailable):
    """The model answered, but not with vectors that can be used. ``count_is_wrong``: too few or too many of them."""

    def __init__(self, why: str, *, count_is_wrong: bool = False) -> None:
        super().__init__(f"嵌入模型返回的向量不能用（{why}），请换一个嵌入模型，或检查嵌入服务的日志")
        self.why = why
        self.count_is_wrong = count_is_wrong


def unit_rows(raw: object, *, count: int, dimension: int | None = None) -> Matrix:
    """Validate a batch and scale every row to length one; shape ``(count, dimension)``, float32.

    ``raw`` is a sequence of rows: sequences of numbers, or base64 strings of little-endian float32 (OpenAI's form).

    Raises:
        BadVectors: wrong count, ragged or unexpected dimension, no numbers; an empty, zero, NaN or infinite row.

    """
    rows = [_row(item, place) for place, item in enumerate(_items(raw, count), start=1)]
    width = dimension if dimension is not None else (len(rows[0]) if rows else 0)
    for place, row in enumerate(rows, start=1):
        _check(row, place, width)
    if not rows:
        return np.zeros((0, width), dtype=np.float32)
    matrix = np.stack(rows)
    # Two steps, because the square of a large or tiny component would leave the range of a double.
    matrix /= np.abs(matrix).max(axis=1, keepdims=True)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix.astype(np.float32)


def _items(raw: object, count: int) -> Sequence[object]:
    if isinstance(raw, np.ndarray):
        raw = list(cast("NDArray[np.float64]", raw))
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        raise BadVectors("不是向量列表", count_is_wrong=True)
    items = cast("Sequence[object]", raw)
    if len(items) != count:
        raise BadVectors(f"送去 {count} 条，返回 {len(items)} 条", count_is_wrong=True)
    return items


def _row(item: object, place: int) -> _Row:
    if isinstance(item, str):
        return _from_base64(item, place)
    try:
        row = np.asarray(item, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as e:
        raise BadVectors(f"第 {place} 条不是数字列表") from e
    if row.ndim != 1:
        raise BadVectors(f"第 {place} 条不是数字列表")
    return row


def _from_base64(text: str, place: int) -> _Row:
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float64)
    except (binascii.Error, ValueError) as e:
        raise BadVectors(f"第 {place} 条不是有效的 base64 向量") from e


def _check(row: _Row, place: int, width: int) -> None:
    if len(row) == 0:
        raise BadVectors(f"第 {place} 条是空的")
    if len(row) != width:
        raise BadVectors(f"第 {place} 条是 {len(row)} 维，应为 {width} 维")
    if len(row) < MIN_DIMENSION:
        raise BadVectors(f"第 {place} 条只有 {len(row)} 维")
    if not np.isfinite(row).all():
        raise BadVectors(f"第 {place} 条含有 NaN 或无穷大")
    if float(np.abs(row).max()) < _SMALLEST_NORM:
        raise BadVectors(f"第 {place} 条全为零")
