"""English words for days: each rule is a pattern and what it means on a given day. Pure.

Rules stand from the longest reading to the shortest; what one has read, the next ones do not see.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

from .chinese import Meaning, Rule
from .span import DAY, Span, days_from, month, months, months_before, one_day, week_of, year

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_WORDS: Final = {word: i for i, word in enumerate(_NUMBERS)} | {"a": 1, "an": 1, "a couple of": 2}
_SEASONS: Final = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 14)}
_HOLIDAYS: Final = {
    "christmas": (12, 25),
    "halloween": (10, 31),
    "new year's eve": (12, 31),
    "valentine's day": (2, 14),
}
_M: Final = "(" + "|".join([*_MONTHS, "sept", *(name[:3] for name in _MONTHS)]) + r")\.?"
_D: Final = r"(\d{1,2})(?:st|nd|rd|th)?"
_Y: Final = r"(\d{4})"
_N: Final = r"(\d{1,3}|a couple of|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_W: Final = "(" + "|".join(_WEEKDAYS) + ")"
_S: Final = "(" + "|".join(_SEASONS) + ")"
_LENGTH: Final = {"day": 1, "week": 7, "month": 31, "year": 366}
_TURN: Final = {"last": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}
_T: Final = "(last|previous|this|next|coming)"


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _WORDS[text]


def _month(name: str) -> int:
    return next(i for i, full in enumerate(_MONTHS, 1) if full.startswith(name[:3]))


def _numbered(m: re.Match[str], _: date) -> list[Span]:
    return [Span(date(int(m[1]), int(m[2]), 1), month(int(m[1]), int(m[2])).end)]


def _either(make: Callable[[int], Span], today: date) -> list[Span]:
    this = make(today.year)
    return [this] if this.start <= today else [this, make(today.year - 1)]


def _turn(m: re.Match[str], today: date) -> list[Span]:
    by = _TURN[m[1]]
    if m[2] == "week":
        return [week_of(today, by)]
    if m[2] == "weekend":
        return [days_from(week_of(today, by).start + DAY * 5, 2)]
    if m[2] == "month":
        return [month(today.year, today.month + by)]
    if m[2] == "night":
        return [one_day(today + DAY * by)]
    return [year(today.year + by)]


def _turned(m: re.Match[str], today: date, make: Callable[[int], Span]) -> list[Span]:
    """The latest one that is over, the one of this year, or the first one ahead."""
    around = [make(today.year + shift) for shift in (-2, -1, 0, 1, 2)]
    if _TURN[m[1]] < 0:
        return [[one for one in around if one.end <= today][-1]]
    return [next(one for one in around if one.start > today)] if _TURN[m[1]] else [around[2]]


def _weekday(m: re.Match[str], today: date) -> list[Span]:
    number = _WEEKDAYS.index(m[2])
    by = _TURN.get(m[1] or "", 0)
    if by < 0:
        return [one_day(today - DAY * ((today.weekday() - number - 1) % 7 + 1))]
    if by > 0:
        return [one_day(today + DAY * ((number - today.weekday() - 1) % 7 + 1))]
    day = week_of(today).start + DAY * number
    return [one_day(day)] if m[1] or day <= today else [one_day(day), one_day(day - timedelta(weeks=1))]


def _ago(m: re.Match[str], today: date) -> list[Span]:
    count, unit = _number(m[1]), m[2]
    if unit == "day":
        return [one_day(today - DAY * count)]
    if unit == "week":
        return [week_of(today, -count)]
    if unit == "month":
        there = months_before(today, count)
        return [month(there.year, there.month)]
    return [year(today.year - count)]


def _lately(m: re.Match[str], today: date) -> list[Span]:
    count, unit = _number(m[1] or "one"), m[2]
    days = count * {"day": 1, "week": 7}.get(unit, 0)
    start = today - DAY * days if days else months_before(today, count * (12 if unit == "year" else 1))
    return [Span(start, today + DAY)]


def _few(m: re.Match[str], today: date) -> list[Span]:
    return [Span(today - DAY * _LENGTH[m[1]] * (7 if m[1] == "day" else 3), today + DAY)]


def _holiday(of: int, name: str) -> Span:
    return one_day(date(of, *_HOLIDAYS[name]))


def _rule(pattern: str, meaning: Meaning) -> Rule:
    return re.compile(rf"(?<![a-z\d]){pattern}(?![a-z\d])"), meaning


_H: Final = "(" + "|".join(_HOLIDAYS) + ")"
RULES: Final[tuple[Rule, ...]] = (
    _rule(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", lambda m, _: [one_day(date(int(m[1]), int(m[2]), int(m[3])))]),
    _rule(rf"{_D} (?:of )?{_M},? {_Y}", lambda m, _: [one_day(date(int(m[3]), _month(m[2]), int(m[1])))]),
    _rule(rf"{_M} {_D},? {_Y}", lambda m, _: [one_day(date(int(m[3]), _month(m[1]), int(m[2])))]),
    _rule(rf"{_M}(?: of|,)? {_Y}", lambda m, _: [month(int(m[2]), _month(m[1]))]),
    _rule(rf"{_S}(?: of|,)? {_Y}", lambda m, _: [months(int(m[2]), *_SEASONS[m[1]])]),
    _rule(rf"{_H}(?: of|,)? {_Y}", lambda m, _: [_holiday(int(m[2]), m[1])]),
    _rule(r"(\d{4})-(\d{1,2})", _numbered),
    _rule(rf"{_D} (?:of )?{_M}", lambda m, d: _either(lambda of: one_day(date(of, _month(m[2]), int(m[1]))), d)),
    _rule(rf"{_M} {_D}", lambda m, d: _either(lambda of: one_day(date(of, _month(m[1]), int(m[2]))), d)),
    _rule(rf"{_N} (day|week|month|year)s? (?:ago|before|earlier)", _ago),
    _rule(rf"(?:past|last) {_N} (day|week|month|year)s?", _lately),
    _rule(r"(?:past|last) few (day|week|month|year)s?", _few),
    _rule(r"past (day|week|month|year)", lambda m, d: [Span(d - DAY * _LENGTH[m[1]], d + DAY)]),
    _rule(rf"{_T} {_S}", lambda m, d: _turned(m, d, lambda of: months(of, *_SEASONS[m[2]]))),
    _rule(rf"{_T} {_H}", lambda m, d: _turned(m, d, lambda of: _holiday(of, m[2]))),
    _rule(rf"(last|next) {_M}", lambda m, d: _turned(m, d, lambda of: month(of, _month(m[2])))),
    _rule(rf"(?:{_T} )?{_W}", _weekday),
    _rule(rf"{_T} (week|weekend|month|year|night)", _turn),
    _rule(r"(the )?day before yesterday", lambda _, d: [one_day(d - DAY * 2)]),
    _rule(r"(the )?day after tomorrow", lambda _, d: [one_day(d + DAY * 2)]),
    _rule("yesterday", lambda _, d: [one_day(d - DAY)]),
    _rule("today|tonight|this (?:morning|afternoon|evening)", lambda _, d: [one_day(d)]),
    _rule("tomorrow", lambda _, d: [one_day(d + DAY)]),
    _rule(rf"(?:at|on|for|over) {_H}", lambda m, d: _either(lambda of: _holiday(of, m[1]), d)),
    _rule(rf"in (?:the )?{_S}", lambda m, d: _either(lambda of: months(of, *_SEASONS[m[1]]), d)),
    _rule(rf"(?:in|since|during|of) {_M}", lambda m, d: _either(lambda of: month(of, _month(m[1])), d)),
    _rule(r"(?:in|since|during|of|early|late|mid) ((?:19|20)\d\d)", lambda m, _: [year(int(m[1]))]),
)
