"""Words without a dictionary: what of a text can be matched, and how much of a question a text answers.

Pure. Characters of scripts that are written without blanks count alone and in pairs; words of other scripts count
whole, with English suffixes trimmed. On the development data this beats a segmenter, pairs alone and triples.

Score: ``coverage(q, d) = BM25(q, d) / sum over the terms of q of idf(t) * (k1 + 1)``, in [0, 1): the share of the BM25
that the question could attain at most, so that a weak match of one word never looks like a full one.
BM25 after Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), idf in the never-negative form.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

K1: Final = 1.2
B: Final = 0.75
_DENSE_SCRIPTS: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_RUN: Final = re.compile(rf"[{_DENSE_SCRIPTS}]+|[^\W_{_DENSE_SCRIPTS}]+", re.UNICODE)
_DENSE: Final = re.compile(rf"[{_DENSE_SCRIPTS}]")
_STOP: Final = frozenset("的了是在有和与也都就吗呢吧啊呀么我你他她它们这那哪个一不会要")
_ENGLISH_STOP: Final = """
a an the is are was were be been am do does did to of in on at for with and or what when where who which how why
i you he she it we they my your his her its their me him them that this these those have has had
"""
_STOP_WORDS: Final = frozenset(_ENGLISH_STOP.split())


def terms(text: str) -> list[str]:
    """The matchable terms of a text, in order, repetitions kept."""
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).lower()):
        if _DENSE.match(run):
            found += (sign for sign in run if sign not in _STOP)
            found += (run[i : i + 2] for i in range(len(run) - 1))
        elif run not in _STOP_WORDS:
            found.append(_stem(run))
    return found


def _stem(word: str) -> str:
    if len(word) > 4 and word.isascii():
        for suffix in ("ing", "ied", "ies", "ed", "es", "s"):
            if word.endswith(suffix) and len(word) - len(suffix) >= 3:
                return word[: -len(suffix)]
    return word


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Term counts of some texts, ready to be asked. ``counts[i]`` and ``lengths[i]`` belong to text i."""

    counts: tuple[Mapping[str, int], ...]
    lengths: tuple[int, ...]
    frequency: Mapping[str, int]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Lexicon:
        """Count the terms of ``texts``."""
        counts = tuple(Counter(terms(text)) for text in texts)
        frequency: Counter[str] = Counter()
        for one in counts:
            frequency.update(one.keys())
        return cls(counts, tuple(sum(one.values()) for one in counts), frequency)

    def coverage(self, question: str) -> list[float]:
        """One value in [0, 1) a text: the share of the question's attainable BM25."""
        asked = set(terms(question))
        weights = {term: self._idf(term) for term in asked}
        attainable = sum(weights.values()) * (K1 + 1)
        if not attainable or not self.counts:
            return [0.0] * len(self.counts)
        mean = sum(self.lengths) / len(self.lengths) or 1.0
        return [self._bm25(i, weights, mean) / attainable for i in range(len(self.counts))]

    def _idf(self, term: str) -> float:
        df = self.frequency.get(term, 0)
        return math.log1p((len(self.counts) - df + 0.5) / (df + 0.5))

    def _bm25(self, i: int, weights: Mapping[str, float], mean: float) -> float:
        counts, norm = self.counts[i], K1 * (1 - B + B * self.lengths[i] / mean)
        return sum(w * tf * (K1 + 1) / (tf + norm) for term, w in weights.items() if (tf := counts.get(term, 0)))
