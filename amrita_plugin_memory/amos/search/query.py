"""What a person or a model asked, as terms and phrases. Pure: values in, values out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from . import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_TERMS: Final = 48
MAX_PHRASES: Final = 8
MAX_CHARS: Final = 2_000

_QUOTED: Final = re.compile(r'"([^"]*)"|“([^”]*)”|「([^」]*)」')
_FILLER: Final = frozenset("的了吗呢吧啊嘛呀么们之着过是在我你他她它这那和与就都也很")
_ENGLISH_FILLER: Final = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "is",
        "are",
        "was",
        "were",
        "in",
        "on",
        "at",
        "for",
        "and",
        "or",
        "my",
        "me",
        "i",
        "you",
        "your",
        "it",
        "this",
        "that",
        "with",
        "do",
        "does",
        "what",
        "which",
        "who",
    ]
)


@dataclass(frozen=True, slots=True)
class Query:
    """``strong`` terms decide what is found; ``weak`` single signs only help to order; ``phrases`` must all occur."""

    strong: tuple[str, ...]
    weak: tuple[str, ...]
    phrases: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Nothing to look for."""
        return not self.strong and not self.phrases


def parse(text: str, exact_phrases: Sequence[str] = ()) -> Query:
    """Read a query; ``"…"``, ``“…”`` and ``「…」`` mark phrases, which add to ``exact_phrases``."""
    text = text[:MAX_CHARS]
    quoted = [a or b or c for a, b, c in _QUOTED.findall(text)]
    phrases = _distinct(p.strip() for p in (*quoted, *exact_phrases) if p.strip())[:MAX_PHRASES]
    strong: list[str] = []
    weak: list[str] = []
    for run, solid in words.runs(_QUOTED.sub(" ", text)):
        if not solid or len(run) == 1:
            strong.append(run)
        else:
            strong += words.neighbours(run)
            weak += run
    return Query(_telling(_distinct(strong)), _distinct(s for s in weak if s not in _FILLER)[:MAX_TERMS], phrases)


def _telling(terms: tuple[str, ...]) -> tuple[str, ...]:
    telling = tuple(t for t in terms if t not in _ENGLISH_FILLER and not (_FILLER & set(t)))
    kept = telling or terms
    if len(kept) <= MAX_TERMS:
        return kept
    step = len(kept) / MAX_TERMS
    return tuple(kept[int(i * step)] for i in range(MAX_TERMS))


def _distinct(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def match_any(terms: Sequence[str]) -> str:
    """The FTS5 expression for "at least one of these"; terms never contain a quote (see ``words``)."""
    return "(" + " OR ".join(f'"{t}"' for t in terms) + ")"


def match_phrase(phrase: str) -> str | None:
    """The FTS5 expression that a text with this phrase surely meets; None when the phrase has no words.

    The last word may go on (``hot`` meets ``hotel``); the caller compares the text itself afterwards.
    """
    units = words.split(phrase).units
    return "{name units} : (" + " + ".join(f'"{u}"' for u in units) + " *)" if units else None


def match_name(terms: Sequence[str]) -> str:
    """The FTS5 expression for "a name holds at least one of these"."""
    return "{name} : (" + " OR ".join(f'"{t}"' for t in terms) + ")"
