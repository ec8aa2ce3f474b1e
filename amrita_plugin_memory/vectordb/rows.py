"""Between our rows and Chroma's parallel lists: batching, metadata rules, checks. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from amrita_plugin_memory.kernel.errors import Duplicate, InvalidInput, SpaceMismatch

from .ports import Matrix, Partition, Row, Scalar

if TYPE_CHECKING:
    from chromadb.api.types import GetResult

T = TypeVar("T")


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cut a sequence into pieces of at most ``size``, in order."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def runs(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Neighbours that have the same parts (document, vector): one Chroma call takes rows of one kind only."""
    for _, run in groupby(rows, key=lambda row: (row.document is None, row.vector is None)):
        yield list(run)


def check_new(rows: Sequence[Row], *, vectors_required: bool) -> None:
    """Refuse what Chroma would swallow or answer with an English traceback.

    Raises:
        Duplicate: an id comes twice.
        SpaceMismatch: vectors of two dimensions.
        InvalidInput: no vector where one is needed, or one that is not finite numbers in one dimension.

    """
    seen: set[str] = set()
    sizes: set[int] = set()
    for row in rows:
        if row.id in seen:
            raise Duplicate("同一批数据里有两条相同的 ID，请去掉重复后再试", id=row.id)
        seen.add(row.id)
        if row.vector is not None:
            sizes.add(_dimension(row.vector))
        elif vectors_required:
            raise InvalidInput("缺少向量，不能存入向量库")
    if len(sizes) > 1:
        raise SpaceMismatch("同一批数据里有不同维度的向量，请检查嵌入模型")


def _dimension(vector: Matrix) -> int:
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise InvalidInput("向量必须是一维的有限数值，请检查嵌入服务")
    return int(vector.size)


def stored_metadata(metadata: Mapping[str, Scalar | None]) -> dict[str, Scalar] | None:
    """What Chroma takes for a new row: no None values, and None instead of an empty dict."""
    return {key: value for key, value in metadata.items() if value is not None} or None


def changed_metadata(old: Mapping[str, Scalar], new: Mapping[str, Scalar | None]) -> dict[str, Scalar | None] | None:
    """The update that leaves exactly ``new``: Chroma merges, and removes a key whose value is None."""
    return {**dict.fromkeys(old), **new} or None


def rows_from(result: GetResult) -> list[Row]:
    """Rows of one answer, in its order; vectors only where they were asked for."""
    ids = result["ids"]
    documents = result["documents"] or [None] * len(ids)
    metadatas = result["metadatas"] or [None] * len(ids)
    given = result["embeddings"]
    vectors = [None] * len(ids) if given is None else [np.asarray(v, dtype=np.float32) for v in given]
    return [
        Row(id=i, document=d, metadata=dict(m or {}), vector=v)  # pyright: ignore[reportArgumentType]
        for i, d, m, v in zip(ids, documents, metadatas, vectors, strict=True)
    ]


def in_order(rows: Sequence[Row], ids: Sequence[str]) -> list[Row]:
    """The rows in the order of ``ids``; missing ones are left out, repetitions too."""
    found = {row.id: row for row in rows}
    return [found[i] for i in dict.fromkeys(ids) if i in found]


def bare(row: Row) -> Row:
    """The row without its vector."""
    return row if row.vector is None else Row(row.id, row.document, row.metadata)


def partition_of(key: str, rows: Sequence[Row], *, dimension: int = 0, source: str = "") -> Partition:
    """A partition from rows with vectors; a row without one gets zeros, which only words can find.

    ``dimension`` is used when no row has a vector.
    """
    vectors = [row.vector for row in rows]
    width = next((v.size for v in vectors if v is not None), dimension)
    matrix = np.zeros((len(rows), width), dtype=np.float32)
    for place, vector in enumerate(vectors):
        if vector is not None:
            matrix[place] = vector
    matrix.setflags(write=False)
    return Partition(key, tuple(bare(row) for row in rows), matrix, source)
