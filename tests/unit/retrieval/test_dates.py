from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.retrieval.dates import Span, spans
from amrita_plugin_memory.retrieval.dates.festivals import SPOKEN, festival

SHANGHAI = timezone(timedelta(hours=8))
MONDAY = datetime(2026, 11, 30, 20, 0, tzinfo=SHANGHAI)


def read(text, now=MONDAY):
    """As ``2026-11-23/7``: first day and number of days."""
    return [f"{span.start}/{(span.end - span.start).days}" for span in spans(text, now)]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("昨天", "2026-11-29/1"),
        ("前天晚上", "2026-11-28/1"),
        ("大前天", "2026-11-27/1"),
        ("今晚吃什么", "2026-11-30/1"),
        ("后天", "2026-12-02/1"),
        ("上周说了什么", "2026-11-23/7"),
        ("这周", "2026-11-30/7"),
        ("上上周", "2026-11-16/7"),
        ("上周五", "2026-11-27/1"),
        ("下周三", "2026-12-09/1"),
        ("上个星期天", "2026-11-29/1"),
        ("上周末", "2026-11-28/2"),
        ("上个月", "2026-10-01/31"),
        ("本月", "2026-11-01/30"),
        ("上个月5号", "2026-10-05/1"),
        ("三天前", "2026-11-27/1"),
        ("两周前", "2026-11-16/7"),
        ("两个月前", "2026-09-01/30"),
        ("5年前", "2021-01-01/365"),
        ("最近三天", "2026-11-27/4"),
        ("前几天", "2026-11-23/8"),
        ("去年", "2025-01-01/365"),
        ("前年三月", "2024-03-01/31"),
        ("今年三月", "2026-03-01/31"),
        ("明年二月", "2027-02-01/28"),
        ("2023年5月5日", "2023-05-05/1"),
        ("23年5月", "2023-05-01/31"),
        ("二〇二三年五月", "2023-05-01/31"),
        ("2023年", "2023-01-01/365"),
        ("3月5日", "2026-03-05/1"),
        ("五月三号", "2026-05-03/1"),
        ("十月", "2026-10-01/31"),
        ("去年夏天", "2025-06-01/92"),
        ("去年冬天", "2025-12-01/90"),
        ("暑假", "2026-07-01/62"),
        ("去年年底", "2025-11-01/61"),
        ("去年中秋", "2025-10-06/1"),
        ("去年的中秋节", "2025-10-06/1"),
        ("农历八月十五", "2026-09-25/1"),
        ("今年春节", "2026-02-17/7"),
        ("去年除夕", "2025-01-28/1"),
        ("元宵", "2026-03-03/1"),
        ("端午节", "2026-06-19/1"),
        ("2024年清明", "2024-04-04/1"),
        ("七夕", "2026-08-19/1"),
        ("重阳", "2026-10-18/1"),
        ("国庆", "2026-10-01/7"),
        ("yesterday", "2026-11-29/1"),
        ("the day before yesterday", "2026-11-28/1"),
        ("last night", "2026-11-29/1"),
        ("last week", "2026-11-23/7"),
        ("last month", "2026-10-01/31"),
        ("last Friday", "2026-11-27/1"),
        ("last Monday", "2026-11-23/1"),
        ("next Friday", "2026-12-04/1"),
        ("2 days ago", "2026-11-28/1"),
        ("a couple of weeks ago", "2026-11-16/7"),
        ("in the past two weeks", "2026-11-16/15"),
        ("last summer", "2026-06-01/92"),
        ("summer of 2021", "2021-06-01/92"),
        ("in May 2023", "2023-05-01/31"),
        ("on 5 May, 2023", "2023-05-05/1"),
        ("May 5th, 2023", "2023-05-05/1"),
        ("July 3", "2026-07-03/1"),
        ("in March", "2026-03-01/31"),
        ("in 2022", "2022-01-01/365"),
        ("last Christmas", "2025-12-25/1"),
        ("2023-05-05", "2023-05-05/1"),
        ("ＬＡＳＴ　ＷＥＥＫ", "2026-11-23/7"),
    ],
)
def test_date_words_mean_days(text, meant):
    assert read(text) == [meant]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("周五", ["2026-11-27/1", "2026-12-04/1"]),
        ("12月24日", ["2025-12-24/1", "2026-12-24/1"]),
        ("圣诞节", ["2025-12-25/1", "2026-12-25/1"]),
        ("昨天和上周五", ["2026-11-27/1", "2026-11-29/1"]),
    ],
)
def test_what_lies_ahead_may_also_mean_the_last_one(text, meant):
    assert read(text) == meant


@pytest.mark.parametrize(
    "text",
    ["", "三个月", "每周五去健身", "一周一次", "20号楼", "2月30日", "13月", "天天向上", "第三月台", "每年中秋", "May I go", "this may be", "weekday"],
)  # fmt: skip
def test_what_is_no_date_means_nothing(text):
    assert read(text) == []


def test_the_day_is_the_speakers_and_not_that_of_greenwich():
    late = datetime(2026, 11, 30, 17, 0, tzinfo=UTC)
    assert read("昨天", late) == ["2026-11-29/1"]
    assert read("昨天", late.astimezone(SHANGHAI)) == ["2026-11-30/1"]


def test_a_week_and_a_month_run_over_the_end_of_the_year():
    new_year = datetime(2027, 1, 1, tzinfo=SHANGHAI)
    assert read("上周", new_year) == ["2026-12-21/7"]
    assert read("上个月", new_year) == ["2026-12-01/31"]
    assert read("last winter", new_year) == ["2025-12-01/90"]


@pytest.mark.parametrize("year", range(2015, 2036))
def test_festivals_follow_the_moon(year):
    days = {name: festival(name, year) for name in set(SPOKEN.values())}
    assert all(days.values())
    spring, feast = days["春节"].start, days["中秋"].start
    assert date(year, 1, 20) < spring < date(year, 2, 21)
    assert days["元宵"].start - spring == timedelta(days=14)
    assert (feast - spring).days in range(219, 253)  # seven and a half months, or eight and a half
    assert (days["重阳"].start - feast).days in (23, 24, 53, 54)
    assert (days["七夕"].start - days["端午"].start).days in (60, 61, 62, 89, 90, 91)
    assert days["清明"].start in (date(year, 4, 4), date(year, 4, 5))


def test_a_lunar_festival_outside_the_table_is_not_guessed():
    assert read("2050年中秋") == []


def test_a_span_has_a_day_and_knows_what_it_meets():
    with pytest.raises(InvalidInput):
        Span(date(2026, 1, 2), date(2026, 1, 2))
    week = Span(date(2026, 1, 5), date(2026, 1, 12))
    assert week.holds(date(2026, 1, 11))
    assert not week.holds(date(2026, 1, 12))
    assert not week.meets(Span(date(2026, 1, 12), date(2026, 1, 13)))


@given(
    st.text(alphabet="上下前后大今昨去明年月周日号天末个三十二零〇0129 -May春节假初底ago last in", max_size=40),
    st.datetimes(timezones=st.just(UTC)),
)
def test_any_text_at_any_time_is_read_without_an_error(text, now):
    assert all(span.start < span.end for span in spans(text, now))


def test_a_long_text_of_date_words_is_read_in_bounded_pieces():
    assert len(spans("昨天" * 100_000 + "三月", MONDAY)) == 1
