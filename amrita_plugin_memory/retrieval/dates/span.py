"""Days from a first one up to, and without, a last one. Pure."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta

from amrita_plugin_memory.kernel.errors import InvalidInput

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Days ``start <= day < end``."""

    start: date
    end: date

    def __post_init__(self) -> None:
        """Refuse a span without a day."""
        if self.end <= self.start:
            raise InvalidInput("时间段的结束必须晚于开始")

    def holds(self, day: date) -> bool:
        """Whether ``day`` is one of these days."""
        return self.start <= day < self.end

    def meets(self, other: Span) -> bool:
        """Whether the two have a day in common."""
        return self.start < other.end and other.start < self.end


def one_day(day: date) -> Span:
    """That day alone."""
    return Span(day, day + DAY)


def days_from(day: date, count: int) -> Span:
    """``count`` days beginning with ``day``."""
    return Span(day, day + DAY * count)


def week_of(day: date, shift: int = 0) -> Span:
    """Monday to Sunday around ``day``, ``shift`` weeks later."""
    monday = day - DAY * day.weekday() + timedelta(weeks=shift)
    return days_from(monday, 7)


def month(year: int, number: int) -> Span:
    """A month; ``number`` may pass 1..12 and then runs into the years around."""
    index = year * 12 + number - 1
    first = date(index // 12, index % 12 + 1, 1)
    return days_from(first, monthrange(first.year, first.month)[1])


def months(year: int, first: int, last: int) -> Span:
    """From the first day of month ``first`` to the last of month ``last``, numbered as in ``month``."""
    return Span(month(year, first).start, month(year, last).end)


def year(number: int) -> Span:
    """A calendar year."""
    return Span(date(number, 1, 1), date(number + 1, 1, 1))


def months_before(day: date, count: int) -> date:
    """The same day ``count`` months earlier, or the last one of that month."""
    there = month(day.year, day.month - count)
    return there.start.replace(day=min(day.day, monthrange(there.start.year, there.start.month)[1]))
