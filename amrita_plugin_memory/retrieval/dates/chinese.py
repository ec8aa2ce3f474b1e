"""Chinese words for days: each rule is a pattern and what it means on a given day. Pure.

Rules stand from the longest reading to the shortest; what one has read, the next ones do not see.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final, TypeAlias

from .festivals import SPOKEN, festival
from .span import DAY, Span, days_from, month, months, months_before, one_day, week_of, year

Meaning: TypeAlias = Callable[[re.Match[str], date], list[Span]]
Rule: TypeAlias = tuple[re.Pattern[str], Meaning]

_DIGITS: Final = {sign: i for i, sign in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0, "俩": 2}
_YEARS: Final = {"大前年": -3, "前年": -2, "去年": -1, "上年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2}
_DAYS: Final = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_SEASONS: Final = {"春": (3, 5), "夏": (6, 8), "暑": (7, 8), "秋": (9, 11), "冬": (12, 14), "寒": (13, 14)}
_WEEKDAY: Final = (
    {sign: i for i, sign in enumerate("一二三四五六日")} | {"天": 6} | {str(i): i - 1 for i in range(1, 8)}
)
_N: Final = r"(\d{1,3}|[一二两俩三四五六七八九十]{1,3})"
_Y: Final = r"((?:\d{4}|\d{2}|[二〇零一三四五六七八九]{4})年|大前年|前年|去年|上年|今年|本年|明年|后年)"
_WEEK: Final = r"(?:周|星期|礼拜)"
_SHIFT: Final = r"(上上个?|上个?|下下个?|下个?|这个?|本)"


def number(text: str) -> int:
    """1 to 99 in digits or as it is spoken: ``12``, ``十二``, ``二十``, ``两``."""
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.partition("十")
    if not ten:
        return int("".join(str(_DIGITS[sign]) for sign in text))
    return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)


def _year(text: str, today: date) -> int:
    if text in _YEARS:
        return today.year + _YEARS[text]
    value = number(text.removesuffix("年"))
    return 2000 + value if value < 100 else value


def _month(text: str) -> int:
    if not 1 <= number(text) <= 12:
        raise ValueError(text)
    return number(text)


def _shift(text: str) -> int:
    return text.count("下") - text.count("上")


def _either(make: Callable[[int], Span | None], today: date) -> list[Span]:
    """What lies in this year and, while that is still ahead, in the last one too."""
    this = make(today.year)
    found = [this] if this else []
    if this is None or this.start > today:
        found += [last for last in (make(today.year - 1),) if last]
    return found


def _full_date(m: re.Match[str], today: date) -> list[Span]:
    return [one_day(date(_year(m[1], today), _month(m[2]), number(m[3])))]


def _festival_of(m: re.Match[str], today: date) -> list[Span]:
    found = festival(SPOKEN[m[2]], _year(m[1], today))
    return [found] if found else []


def _season(name: str, of: int) -> Span:
    return months(of, *_SEASONS[name])


def _ago(m: re.Match[str], today: date) -> list[Span]:
    count, unit = number(m[1]), m[2]
    if unit in ("天", "日"):
        return [one_day(today - DAY * count)]
    if unit in ("周", "星期", "礼拜"):
        return [week_of(today, -count)]
    if unit == "月":
        there = months_before(today, count)
        return [month(there.year, there.month)]
    return [year(today.year - count)]


def _lately(m: re.Match[str], today: date) -> list[Span]:
    count, unit = number(m[1]), m[2]
    days = count * (1 if unit in ("天", "日") else 7 if unit in ("周", "星期", "礼拜") else 0)
    start = today - DAY * days if days else months_before(today, count * (12 if unit == "年" else 1))
    return [Span(start, today + DAY)]


def _weekday(m: re.Match[str], today: date) -> list[Span]:
    day = week_of(today, _shift(m[1]) if m[1] else 0).start + DAY * _WEEKDAY[m[2]]
    return [one_day(day)] if m[1] or day <= today else [one_day(day), one_day(day - timedelta(weeks=1))]


def _weekend(m: re.Match[str], today: date) -> list[Span]:
    saturday = week_of(today, _shift(m[1]) if m[1] else 0).start + DAY * 5
    found = [days_from(saturday, 2)]
    return found if m[1] or saturday <= today else [*found, days_from(saturday - timedelta(weeks=1), 2)]


def _month_of(m: re.Match[str], today: date) -> list[Span]:
    return [month(_year(m[1], today), _month(m[2]))]


def _month_alone(m: re.Match[str], today: date) -> list[Span]:
    return _either(lambda of: month(of, _month(m[1])), today)


def _day_alone(m: re.Match[str], today: date) -> list[Span]:
    return _either(lambda of: one_day(date(of, _month(m[1]), number(m[2]))), today)


def _day_of_month(m: re.Match[str], today: date) -> list[Span]:
    there = month(today.year, today.month + _shift(m[1]))
    return [one_day(there.start.replace(day=number(m[2])))]


def _rule(pattern: str, meaning: Meaning) -> Rule:
    return re.compile(pattern), meaning


_FESTIVALS: Final = "(" + "|".join(sorted(SPOKEN, key=len, reverse=True)) + ")"
_SEASON: Final = "([春夏秋冬])(?:天|季|日里)"
_HOLIDAY: Final = "([暑寒])假"
RULES: Final[tuple[Rule, ...]] = (
    _rule(rf"{_Y}的?{_N}月{_N}[日号]?", _full_date),
    _rule(rf"{_Y}的?{_FESTIVALS}", _festival_of),
    _rule(rf"{_Y}的?([春夏秋冬暑寒])(?:天|季|假)?", lambda m, d: [_season(m[2], _year(m[1], d))]),
    _rule(rf"{_Y}的?{_N}月", _month_of),
    _rule(rf"{_Y}的?年?初", lambda m, d: [months(_year(m[1], d), 1, 2)]),
    _rule(rf"{_Y}的?年?[底末]", lambda m, d: [months(_year(m[1], d), 11, 12)]),
    _rule(rf"{_SHIFT}月{_N}[日号]", _day_of_month),
    _rule(rf"{_N}月{_N}[日号]", _day_alone),
    _rule(r"(?<!\d)(\d{1,2})月(\d{1,2})(?!\d)", _day_alone),
    _rule(rf"{_N}个?(天|日|周|星期|礼拜|月|年)(?:之前|以前|前)", _ago),
    _rule(rf"(?:最近|过去|近|这|前)的?{_N}个?(天|日|周|星期|礼拜|月|年)(?!前)", _lately),
    _rule(r"半年(?:之前|以前|前)", lambda _, d: [months(d.year, d.month - 7, d.month - 5)]),
    _rule(r"[前这近]几天|几天前|前两天", lambda _, d: [Span(d - DAY * 7, d + DAY)]),
    _rule(rf"(?<![每一两\d]){_SHIFT}?{_WEEK}([一二三四五六日天1-7])(?!\d)", _weekday),
    _rule(rf"{_SHIFT}?周末", _weekend),
    _rule(rf"{_SHIFT}{_WEEK}", lambda m, d: [week_of(d, _shift(m[1]))]),
    _rule(rf"{_SHIFT}月", lambda m, d: [month(d.year, d.month + _shift(m[1]))]),
    _rule(r"(大前|前|昨|今|明|大后|后)(?:天|日|晚|早|夜)", lambda m, d: [one_day(d + DAY * _DAYS[m[1]])]),
    _rule(f"(?<!每年){_FESTIVALS}", lambda m, d: _either(lambda of: festival(SPOKEN[m[1]], of), d)),
    _rule(_SEASON, lambda m, d: _either(lambda of: _season(m[1], of), d)),
    _rule(_HOLIDAY, lambda m, d: _either(lambda of: _season(m[1], of), d)),
    _rule(r"((?:\d{4}|[二〇零一三四五六七八九]{4})年)", lambda m, d: [year(_year(m[1], d))]),
    _rule(r"(大前年|前年|去年|今年|明年|后年)", lambda m, d: [year(_year(m[1], d))]),
    _rule(r"年([底末初])", lambda m, d: _either(lambda of: months(of, *((1, 2) if m[1] == "初" else (11, 12))), d)),
    _rule(rf"(?<![\d第])(?<![农阴]历){_N}月(?:份|初|底|中旬|里)?(?![\d个])", _month_alone),
)
