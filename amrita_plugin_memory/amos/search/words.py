"""How text becomes index words: one way for what is stored and for what is asked, for every script.

Pure: values in, values out. Scripts written without blanks (Han, kana, hangul, Thai …) give single signs and pairs
of neighbouring signs; every other script gives whole words; an emoji is a word of its own. Measured on Chinese
memory questions, single signs with pairs find more than a word segmenter does (reference/retrieval.md, section 2).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

VERSION: Final = 1  # of this tokenisation; an index built by another one is rebuilt
MAX_WORD: Final = 64

_SOLID = (
    "\u3005\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han with its extensions
    "\u1100-\u11ff\uac00-\ud7a3"  # hangul
    "\u0e01-\u0e4e\u0e80-\u0ecf\u0f40-\u0fbc\u1000-\u104a\u1780-\u17d3"  # Thai, Lao, Tibetan, Burmese, Khmer
)
_EMOJI = "\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0981-\u0dff"
_TOKEN: Final = re.compile(
    f"(?P<solid>[{_SOLID}]+)|(?P<emoji>[{_EMOJI}])|(?P<word>(?:[^\\W_{_SOLID}{_EMOJI}]|[{_MARKS}])+)"
)
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_PLURAL: Final = re.compile(r"[a-z]{3,}(?<![siu])s")


@dataclass(frozen=True, slots=True)
class Words:
    """``units`` are words and single signs in the order of the text, ``pairs`` the neighbours of solid scripts."""

    units: tuple[str, ...]
    pairs: tuple[str, ...]


def fold(text: str) -> str:
    """The form in which texts are compared: compatibility forms, case and Latin accents are levelled."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", parts))


def split(text: str) -> Words:
    """The words of a text."""
    units: list[str] = []
    pairs: list[str] = []
    for run, solid in runs(text):
        if solid:
            units += run
            pairs += neighbours(run)
        else:
            units.append(run)
    return Words(tuple(units), tuple(pairs))


def runs(text: str) -> list[tuple[str, bool]]:
    """Words, emoji (False) and runs of solid signs (True), folded, in order."""
    found: list[tuple[str, bool]] = []
    for match in _TOKEN.finditer(fold(text)):
        kind = match.lastgroup
        token = match.group()
        found.append((token, True) if kind == "solid" else (stem(token[:MAX_WORD]), False))
    return found


def neighbours(run: str) -> list[str]:
    """Each two signs that stand side by side."""
    return [run[i : i + 2] for i in range(len(run) - 1)]


def stem(word: str) -> str:
    """An English plural loses its ``s``, so that hotel and hotels meet; anything else stays."""
    return word[:-1] if _PLURAL.fullmatch(word) else word
