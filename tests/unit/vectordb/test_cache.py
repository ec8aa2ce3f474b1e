import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.vectordb.cache import PartitionCache, weight
from amrita_plugin_memory.vectordb.ports import Row
from amrita_plugin_memory.vectordb.rows import partition_of


def row(id, user="u", vector=(1.0, 0.0), document="x"):
    return Row(id, document, {"user_id": user}, np.array(vector, dtype=np.float32))


def partition(user, *rows):
    return partition_of(user, rows)


def test_the_least_recently_used_partition_goes_first():
    one = partition("a", row("1", "a"))
    cache = PartitionCache(2 * weight(one))
    cache.put(one)
    cache.put(partition("b", row("2", "b")))
    cache.get("a")
    cache.put(partition("c", row("3", "c")))
    assert cache.get("b") is None
    assert cache.get("a") is one
    assert cache.bytes == 2 * weight(one)


def test_a_partition_above_the_bound_is_not_held_and_costs_no_other_its_place():
    small = partition("a", row("1", "a"))
    cache = PartitionCache(weight(small))
    cache.put(small)
    cache.put(partition("b", *[row(str(n), "b") for n in range(100)]))
    assert len(cache) == 1
    assert cache.get("a") is small


def test_a_partition_that_outgrows_the_bound_by_writing_is_let_go():
    small = partition("a", row("0", "a"))
    cache = PartitionCache(weight(small) + 10)
    cache.put(small)
    cache.added([row(str(n), "a") for n in range(1, 50)])
    assert cache.get("a") is None
    assert cache.bytes == 0


def test_a_row_of_another_dimension_drops_the_partition_rather_than_bending_it():
    cache = PartitionCache(1 << 20)
    cache.put(partition("u", row("1")))
    cache.added([row("2", vector=(1.0, 0.0, 0.0))])
    assert cache.get("u") is None


def test_the_first_row_of_an_empty_partition_sets_its_width():
    cache = PartitionCache(1 << 20)
    cache.put(partition("u"))
    cache.added([row("1", vector=(1.0, 2.0, 3.0))])
    assert cache.get("u").matrix.shape == (1, 3)


def test_every_change_moves_the_epoch_even_for_keys_that_are_not_held():
    cache = PartitionCache(1 << 20)
    epochs = [cache.epoch]
    for change in (
        lambda: cache.added([row("1")]),
        lambda: cache.updated([row("1")], [row("1")]),
        lambda: cache.removed([row("1")]),
        cache.clear,
    ):
        change()
        epochs.append(cache.epoch)
    assert len(set(epochs)) == 5


def test_what_a_reader_holds_is_never_changed_under_its_hands():
    cache = PartitionCache(1 << 20)
    held = partition("u", row("1"), row("2"))
    cache.put(held)
    cache.updated([row("1")], [row("1", vector=(9.0, 9.0))])
    cache.removed([row("2")])
    assert held.matrix.tolist() == [[1, 0], [1, 0]]
    assert len(held.rows) == 2
    assert not cache.get("u").matrix.flags.writeable


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "update", "remove"]), st.integers(0, 5), st.sampled_from("ab"), st.integers(0, 9)
    ),
    max_size=30,
)


@given(steps)
def test_writing_through_equals_reading_again(script):
    store, cache = {}, PartitionCache(1 << 20)
    cache.put(partition("a"))
    cache.put(partition("b"))
    for verb, n, user, value in script:
        new = row(str(n), user, (float(value), 1.0), f"d{value}")
        old = store.get(new.id)
        if verb == "add" and old is None:
            store[new.id] = new
            cache.added([new])
        elif verb == "update" and old is not None:
            store[new.id] = new
            cache.updated([old], [new])
        elif verb == "remove" and old is not None:
            del store[new.id]
            cache.removed([old])
        for key in "ab":
            held = cache.get(key)
            fresh = partition(key, *[r for r in store.values() if r.metadata["user_id"] == key])
            if held is None:
                cache.put(fresh)
                continue
            assert held.rows == fresh.rows
            assert held.matrix.tolist() == fresh.matrix.tolist()
    assert cache.bytes == sum(weight(cache.get(key)) for key in "ab")
