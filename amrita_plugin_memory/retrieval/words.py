"""Words without a dictionary: what of a text can be matched, and how much of a question a text answers.

Pure. Characters of scripts that are written without blanks count alone and in pairs; words of other scripts count
whole, with English endings trimmed. On the development data this beats a segmenter, pairs alone and triples. Texts
keep all their terms; a question leaves out the words that only make it a question, unless it has no others.

Score: ``coverage(q, d) = BM25(q, d) / sum over the terms of q of idf(t) * (k1 + 1)``, in [0, 1): the share of the BM25
that the question could attain at most, so that a weak match of one word never looks like a full one.
BM25 after Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), idf in the never-negative form.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Shares: TypeAlias = NDArray[np.float32]

# Remembered things are short: a second mention adds little (k1), and a longer text is rather richer than vaguer (b).
K1: Final = 0.9
B: Final = 0.2
_DENSE_SCRIPTS: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_RUN: Final = re.compile(rf"[{_DENSE_SCRIPTS}]+|[^\W_{_DENSE_SCRIPTS}]+", re.UNICODE)
_DENSE: Final = re.compile(rf"[{_DENSE_SCRIPTS}]")
_STOP: Final = frozenset("的了是在有和与也都就吗呢吧啊呀么我你他她它们这那哪个一不会要谁什几多怎样何时候因为没很")
_ENGLISH_STOP: Final = """
a an the is are was were be been am do does did to of in on at for with and or what when where who which how why
i you he she it we they my your his her its our their me him us them that this these those have has had
can could will would should might about from by as so if but there s t m re ve ll d
"""
_STOP_WORDS: Final = frozenset(_ENGLISH_STOP.split())
_ENDINGS: Final = ("ing", "ied", "ies", "ed", "es", "s")
_NOT_A_PLURAL: Final = ("ss", "us", "is")


def terms(text: str) -> list[str]:
    """The matchable terms of a text, in order, repetitions kept."""
    return [term for term, _ in _marked(text)]


def asked(question: str) -> frozenset[str]:
    """The terms a question asks for: those that carry content, or all when none does."""
    marked = _marked(question)
    return frozenset(term for term, content in marked if content) or frozenset(term for term, _ in marked)


def _marked(text: str) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).lower()):
        if not _DENSE.match(run):
            found.append((_stem(run), run not in _STOP_WORDS))
            continue
        found += ((sign, sign not in _STOP) for sign in run)
        pairs = (run[i : i + 2] for i in range(len(run) - 1))
        found += ((pair, not _STOP.issuperset(pair)) for pair in pairs)
    return found


def _stem(word: str) -> str:
    """One form for hike, hikes, hiked and hiking; run and running; party and parties."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(_NOT_A_PLURAL):
            word = word[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 3 and word[-1] == "y" else word


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Where each term stands in some texts, ready to be asked.

    ``places[t]`` is the rows of the texts with term t and how often each has it; ``damping[i]`` is how far text i's
    length weakens one mention, in units of mentions.
    """

    size: int
    places: Mapping[str, tuple[NDArray[np.int32], Shares]]
    damping: Shares

    @classmethod
    def of(cls, texts: Sequence[str]) -> Lexicon:
        """Count the terms of ``texts``."""
        rows: dict[str, list[int]] = {}
        often: dict[str, list[int]] = {}
        lengths = np.zeros(len(texts), dtype=np.float32)
        for i, text in enumerate(texts):
            counts = Counter(terms(text))
            lengths[i] = counts.total()
            for term, count in counts.items():
                rows.setdefault(term, []).append(i)
                often.setdefault(term, []).append(count)
        mean = float(lengths.mean()) if texts else 0.0
        places = {t: (np.array(held, np.int32), np.array(often[t], np.float32)) for t, held in rows.items()}
        return cls(len(texts), places, K1 * (1 - B + B * lengths / (mean or 1.0)))

    def coverage(self, question: str) -> Shares:
        """One value in [0, 1) a text, shape (n,): the share of the question's attainable BM25."""
        found = np.zeros(self.size, dtype=np.float32)
        attainable = 0.0
        for term in asked(question):
            places = self.places.get(term)
            weight = self._idf(0 if places is None else len(places[0]))
            attainable += weight
            if places is not None:
                held, often = places
                found[held] += weight * often / (often + self.damping[held])
        return found / np.float32(attainable) if attainable else found

    def _idf(self, holding: int) -> float:
        return float(np.log1p((self.size - holding + 0.5) / (holding + 0.5)))


def is_dense(text: str) -> bool:
    """Whether a text is mainly written in characters without blanks."""
    runs = _RUN.findall(text)
    return sum(len(run) for run in runs if _DENSE.match(run)) * 3 > sum(len(run) for run in runs)
