"""How well a text answers a query, and the piece of it that is shown. Pure: values in, values out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from . import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .query import Query

K1: Final = 1.2
B: Final = 0.5  # chat lines and notes differ much in length; the usual 0.75 punishes notes too hard
NAME_BONUS: Final = 2.0
WEAK: Final = 0.1
PHRASE_BONUS: Final = 3.0
RADIUS: Final = 80


@dataclass(frozen=True, slots=True)
class Candidate:
    """One indexed piece of text with its words as the index holds them."""

    text: str
    name: str
    units: str
    pairs: str

    @property
    def length(self) -> int:
        """How many units the text has."""
        return self.units.count(" ") + 1


@dataclass(frozen=True, slots=True)
class Corpus:
    """How many pieces there are, in how many of them each term occurs, and the usual number of units."""

    size: int
    frequency: Mapping[str, int]
    length: float

    def rarity(self, term: str) -> float:
        """``ln(1 + (N - n + 0.5) / (n + 0.5))``, the idf of BM25 in the form that never falls below zero."""
        n = min(self.frequency.get(term, 0), self.size)
        return math.log1p((self.size - n + 0.5) / (n + 0.5))


def score(query: Query, piece: Candidate, corpus: Corpus) -> tuple[float, tuple[str, ...]]:
    """BM25 with ``1 + idf`` for each strong term, so that one word found in a text of usual length is worth >= 1.

    Returns the score (0 = nothing found; no upper bound) and the strong terms found, in the order of the query.
    """
    haystack = f" {piece.units}  {piece.pairs} "
    names = frozenset(piece.name.split())
    norm = K1 * (1 - B + B * piece.length / max(corpus.length, 1.0))
    total = 0.0
    found: list[str] = []
    for term in query.strong:
        times = haystack.count(f" {term} ")
        if not times and term not in names:
            continue
        found.append(term)
        weight = 1 + corpus.rarity(term)
        total += weight * times * (K1 + 1) / (times + norm) + (NAME_BONUS if term in names else 0.0)
    total += sum(WEAK for sign in query.weak if f" {sign} " in haystack) + PHRASE_BONUS * len(query.phrases)
    return total, tuple(found)


def holds(piece: Candidate, phrases: Sequence[str]) -> bool:
    """True when the text (or its name) contains every phrase, letter case and width aside."""
    if not phrases:
        return True
    text = words.fold(piece.text)
    return all(words.fold(phrase) in text or _in_name(phrase, piece.name) for phrase in phrases)


def _in_name(phrase: str, name: str) -> bool:
    units = " ".join(words.split(phrase).units)
    return bool(units) and f" {units} " in f" {name} "


def snippet(text: str, terms: Sequence[str], radius: int = RADIUS) -> str:
    """The surroundings of the first term found (+-``radius`` characters) on one line; the beginning if none is."""
    place = _first(text, terms)
    start, end = (0, 2 * radius) if place is None else (max(place - radius, 0), place + radius)
    body = " ".join(text[start:end].split())
    return ("..." if start else "") + body + ("..." if end < len(text) else "")


def _first(text: str, terms: Sequence[str]) -> int | None:
    lowered = text.lower()
    if len(lowered) != len(text):  # a few capitals grow when lowered, and places would be off
        lowered = text
    places = [at for term in terms if (at := lowered.find(term)) >= 0]
    return min(places) if places else None
