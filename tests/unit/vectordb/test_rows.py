import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.kernel.errors import Duplicate, InvalidInput, SpaceMismatch
from amrita_plugin_memory.vectordb.ports import Row
from amrita_plugin_memory.vectordb.rows import (
    batches,
    changed_metadata,
    check_new,
    in_order,
    partition_of,
    runs,
    stored_metadata,
)

scalars = st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.none())
metadata = st.dictionaries(st.text(min_size=1, max_size=3), scalars, max_size=6)


def vector(*values):
    return np.array(values, dtype=np.float32)


@given(st.lists(st.integers()), st.integers(1, 7))
def test_batches_keep_everything_in_order_and_under_the_bound(items, size):
    cut = list(batches(items, size))
    assert [item for batch in cut for item in batch] == items
    assert all(1 <= len(batch) <= size for batch in cut)


@given(metadata, metadata)
def test_an_update_leaves_exactly_the_new_metadata_under_chromas_merging(old, new):
    stored = stored_metadata(old) or {}
    for name, value in (changed_metadata(stored, new) or {}).items():
        if value is None:
            stored.pop(name, None)
        else:
            stored[name] = value
    assert stored == (stored_metadata(new) or {})


@given(st.lists(st.booleans()))
def test_runs_keep_the_order_and_never_mix_rows_with_and_without_text(kinds):
    rows = [Row(str(n), "x" if has else None, {}) for n, has in enumerate(kinds)]
    cut = list(runs(rows))
    assert [row for run in cut for row in run] == rows
    assert all(len({row.document is None for row in run}) == 1 for run in cut)


def test_ids_that_were_asked_twice_or_are_missing_do_not_disturb_the_order():
    rows = [Row(i, None, {}) for i in "abc"]
    assert [row.id for row in in_order(rows, ["c", "x", "a", "c"])] == ["c", "a"]


def test_what_chroma_would_swallow_is_refused():
    with pytest.raises(Duplicate):
        check_new([Row("a", None, {}, vector(1)), Row("a", None, {}, vector(1))], vectors_required=True)
    with pytest.raises(SpaceMismatch):
        check_new([Row("a", None, {}, vector(1)), Row("b", None, {}, vector(1, 2))], vectors_required=True)
    with pytest.raises(InvalidInput):
        check_new([Row("a", None, {})], vectors_required=True)
    with pytest.raises(InvalidInput):
        check_new([Row("a", None, {}, np.ones((1, 2), dtype=np.float32))], vectors_required=False)
    check_new([Row("a", None, {})], vectors_required=False)


def test_a_row_whose_vector_is_lost_keeps_its_place_with_zeros():
    partition = partition_of("u", [Row("a", "x", {}, vector(1, 2)), Row("b", "y", {})])
    assert partition.matrix.tolist() == [[1, 2], [0, 0]]
    assert partition_of("u", [Row("a", "x", {})], dimension=3).matrix.shape == (1, 3)
