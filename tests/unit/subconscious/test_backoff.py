from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.subconscious.rules.backoff import Backoff, Plan

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
backoffs = st.builds(Backoff, st.floats(1, 1440), st.floats(1, 10, allow_nan=False), st.floats(60, 10080))


@given(backoffs, st.integers(0, 10**9))
def test_the_delay_is_the_formula_and_never_overflows(backoff, penalty):
    delay = backoff.delay(penalty)
    assert (
        timedelta(minutes=backoff.base)
        <= delay
        <= timedelta(minutes=max(backoff.cap, backoff.base)) + timedelta(seconds=1)
    )
    assert backoff.delay(penalty + 1) >= delay
    if 1 <= penalty <= 20:
        expected = min(backoff.base * backoff.multiplier ** (penalty - 1), max(backoff.cap, backoff.base))
        assert abs(delay.total_seconds() / 60 - expected) < 0.01


def test_the_defaults_give_30_45_67_minutes_up_to_a_day():
    delays = [Backoff().delay(n).total_seconds() / 60 for n in (1, 2, 3, 100, 5000)]
    assert delays == [30, 45, 67.5, 1440, 1440]


@given(st.lists(st.sampled_from(["spoke", "succeeded", "failed"]), max_size=40))
def test_the_penalty_counts_messages_since_the_last_success(events):
    plan, expected = Plan(), 0
    for event in events:
        plan = plan.spoke(NOW, Backoff()) if event == "spoke" else getattr(plan, event)()
        expected = {"spoke": expected + 1, "succeeded": 0, "failed": expected}[event]
        assert plan.penalty == expected
        assert (plan.due is not None) == (event == "spoke")


def test_a_run_missed_during_downtime_happens_once_soon_after_the_restart():
    missed, later = Plan(2, NOW - timedelta(hours=9)), Plan(1, NOW + timedelta(hours=1))
    assert missed.resumed(NOW, timedelta(minutes=1)) == Plan(2, NOW + timedelta(minutes=1))
    assert later.resumed(NOW, timedelta(minutes=1)) == later
    assert Plan(3).resumed(NOW, timedelta(minutes=1)) == Plan(3)
