from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.subconscious.rules.backoff import Plan
from amrita_plugin_memory.subconscious.rules.budget import Spent
from amrita_plugin_memory.subconscious.rules.dedup import groups
from amrita_plugin_memory.subconscious.rules.state import MAX_SUGGESTIONS, CycleState, dump, load, parse_payload

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    max_leaves=8,
)


def test_a_state_reads_back_as_it_was():
    state = CycleState(
        3,
        NOW,
        ("a", "b"),
        ({"content": "x"},),
        ({"action": "create"},),
        Plan(2, NOW),
        Spent("2026-11-30", 7, 1),
        "t9",
        {"idle_planner": {"fine": []}},
    )
    assert load(dump(state)) == state


@given(st.dictionaries(st.sampled_from(sorted(dump(CycleState()))), anything))
def test_any_payload_is_a_state(payload):
    dump(load(payload))


@pytest.mark.parametrize("text", ["", "null", "[]", "{", "7"])
def test_a_broken_payload_counts_as_empty(text):
    assert parse_payload(text) == {}


def test_the_payload_of_the_published_plugin_opens_and_its_own_keys_survive():
    state = load(
        {
            "total_runs": 4,
            "last_run_time": "2026-10-01T00:00:00",
            "last_abstracts": list("abcdef"),
            "penalty": 3,
            "idle_planner": {"uid": "1"},
        }
    )
    assert (state.total_runs, state.plan.penalty, state.last_abstracts[-1]) == (4, 3, "f")
    assert dump(state)["idle_planner"] == {"uid": "1"}


def test_the_newest_abstracts_are_kept_and_success_resets_the_penalty():
    state = CycleState(last_abstracts=tuple("abcde"), plan=Plan(4, NOW)).after_run(NOW, "f", keep=3, cursor="t1")
    assert state.last_abstracts == ("d", "e", "f")
    assert (state.total_runs, state.plan, state.cursor) == (1, Plan(), "t1")


def test_reviewed_suggestions_go_and_those_that_came_meanwhile_stay():
    state = CycleState().with_suggestion({"title": "a"})
    seen = state.suggestions
    state = state.with_suggestion({"title": "b"}).without_suggestions(seen)
    assert [one["title"] for one in state.suggestions] == ["b"]
    for i in range(200):
        state = state.with_suggestion({"title": str(i)})
    assert len(state.suggestions) == MAX_SUGGESTIONS


def test_the_budget_is_a_days_and_starts_again_the_next_day():
    spent = Spent().with_tokens(NOW, 900).with_tokens(NOW, 50)
    assert spent.tokens_left(NOW, 1000) == 50
    assert spent.tokens_left(NOW, 500) == 0
    assert spent.tokens_left(NOW + timedelta(days=1), 1000) == 1000
    assert spent.tokens_left(NOW, 0) is None
    once = spent.with_message(NOW)
    assert not once.may_send(NOW, 1)
    assert once.may_send(NOW + timedelta(days=1), 1)


def test_close_facts_are_proposed_as_one_group_and_strangers_are_not():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(12, 32)).astype(np.float32)
    rows[5] = rows[2] + 0.05 * rng.normal(size=32)
    rows[9] = rows[2] + 0.05 * rng.normal(size=32)
    assert groups(rows) == [[2, 5, 9]]
    assert groups(rows[:1]) == []
