"""Read date words: every rule of every language, the longest reading first. Pure."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from itertools import chain
from typing import Final

from . import chinese, english
from .span import Span

MAX_CHARS: Final = 2_000
# Nothing is read where none of this stands, which spares most texts the rules.
_ANY: Final = re.compile(
    r"[年月周号日天晚夜早春夏秋冬暑寒]|星期|礼拜|五一|六一|十一|清明|端午|七夕|中秋|重阳|元宵|除夕|国庆|元旦|圣诞|双11|\d{4}"
    r"|day|week|month|year|night|morrow|ago|spring|summer|autumn|fall|winter|christmas|halloween"
    r"|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
)


def spans(text: str, now: datetime) -> list[Span]:
    """The days that ``text`` speaks of when it is said at ``now`` (aware, in the speaker's zone), in order, each once.

    A day, month, weekday or festival without a year or week is this one and, while it lies ahead, also the last one.
    Weeks begin on Monday. What is no date (2月30日) is passed over.
    """
    rest = unicodedata.normalize("NFKC", text[:MAX_CHARS]).lower()
    if not _ANY.search(rest):
        return []
    found: set[Span] = set()
    for pattern, meaning in chain(chinese.RULES, english.RULES):
        matches = list(pattern.finditer(rest))
        for match in matches:
            try:
                found.update(meaning(match, now.date()))
            except (ValueError, OverflowError):
                continue
        if matches:
            rest = pattern.sub(lambda read: "\n" * len(read.group()), rest)
    return sorted(found)
