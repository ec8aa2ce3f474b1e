"""Hot partitions by least recent use, bounded by bytes, written through. Pure bookkeeping: no store, no clock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from .ports import PARTITION_KEY, Matrix, Partition, Row
from .rows import bare

_OVERHEAD = 600  # bytes of Python objects a row costs beside its text (measured: dict, strings, Row)


def weight(partition: Partition) -> int:
    """Bytes a partition holds, near enough for a bound."""
    texts = sum(len(row.document or "") for row in partition.rows)
    return partition.matrix.nbytes + 3 * texts + _OVERHEAD * (len(partition.rows) + 1)


class PartitionCache:
    """Partitions of one collection; ``epoch`` moves with every change, so a load that overlapped one is not kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: OrderedDict[str, tuple[Partition, int]] = OrderedDict()
        self.bytes = 0
        self.epoch = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: str) -> Partition | None:
        """The held partition, now the most recently used."""
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, partition: Partition) -> None:
        """Hold a partition; the longest unused ones go. One that is larger than the bound is not held."""
        self.drop(partition.key)
        size = weight(partition)
        if size > self._limit:
            return
        self._held[partition.key] = (partition, size)
        self.bytes += size
        while self.bytes > self._limit:
            _, (_, gone) = self._held.popitem(last=False)
            self.bytes -= gone

    def drop(self, key: str) -> None:
        """Forget one partition."""
        _, size = self._held.pop(key, (None, 0))
        self.bytes -= size

    def clear(self) -> None:
        """Forget everything."""
        self.epoch += 1
        self._held.clear()
        self.bytes = 0

    def added(self, rows: Iterable[Row]) -> None:
        """New rows were stored; a held partition grows by its own, a row it cannot take drops it."""
        self.epoch += 1
        for key, group in _by_key(rows).items():
            held = self.get(key)
            if held is not None:
                self._swap(key, _grown(held, group))

    def removed(self, rows: Iterable[Row]) -> None:
        """Rows were deleted."""
        self.epoch += 1
        for key, group in _by_key(rows).items():
            held = self.get(key)
            if held is not None:
                gone = {row.id for row in group}
                keep = [place for place, row in enumerate(held.rows) if row.id not in gone]
                matrix = _frozen(held.matrix[keep])
                self._swap(key, replace(held, rows=tuple(held.rows[place] for place in keep), matrix=matrix))

    def updated(self, old: Iterable[Row], new: Iterable[Row]) -> None:
        """Rows were changed, perhaps into another partition; a new row without a vector keeps the one it had."""
        self.epoch += 1
        before = {row.id: str(row.metadata.get(PARTITION_KEY)) for row in old}
        for row in new:
            key = str(row.metadata.get(PARTITION_KEY))
            held = self.get(key)
            if before.get(row.id) != key:
                # Its place among the others is the store's to say.
                self.drop(before.get(row.id, key))
                self.drop(key)
            elif held is not None:
                self._swap(key, _changed(held, row))

    def _swap(self, key: str, partition: Partition | None) -> None:
        if partition is None:
            self.drop(key)
        else:
            self.put(partition)


def _by_key(rows: Iterable[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row.metadata.get(PARTITION_KEY)), []).append(row)
    return groups


def _grown(held: Partition, rows: Sequence[Row]) -> Partition | None:
    vectors = [row.vector for row in rows if row.vector is not None]
    fits = len(vectors) == len(rows) and (not held.rows or all(v.size == held.matrix.shape[1] for v in vectors))
    if not fits:
        return None
    more = np.stack(vectors).astype(np.float32, copy=False)
    matrix = _frozen(np.concatenate([held.matrix, more]) if held.rows else more)
    return replace(held, rows=(*held.rows, *map(bare, rows)), matrix=matrix)


def _changed(held: Partition, row: Row) -> Partition | None:
    place = next((n for n, old in enumerate(held.rows) if old.id == row.id), None)
    if place is None or (row.vector is not None and row.vector.size != held.matrix.shape[1]):
        return None
    matrix = held.matrix
    if row.vector is not None:
        matrix = matrix.copy()
        matrix[place] = row.vector
    rows = (*held.rows[:place], bare(row), *held.rows[place + 1 :])
    return replace(held, rows=rows, matrix=_frozen(matrix))


def _frozen(matrix: Matrix) -> Matrix:
    matrix.setflags(write=False)
    return matrix
