from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.ground.formats import dump_line, load_lines
from amrita_plugin_memory.amos.memory.sessions import turns

NOW = datetime(2026, 11, 30, tzinfo=UTC)
roles = st.lists(st.sampled_from(["user", "assistant", "system", "tool", "odd"]), max_size=12)


def lines(*records):
    return load_lines(b"".join(map(dump_line, records)))


def said(role, text="x", **more):
    return {"role": role, "content": text, **more}


@given(roles)
def test_every_message_is_in_exactly_one_turn(given_roles):
    found = turns.group(lines(*(said(role, str(at)) for at, role in enumerate(given_roles))))
    assert [record["content"] for turn in found for record in turn.records] == [
        str(at) for at in range(len(given_roles))
    ]
    assert turns.count(lines(*(said(role) for role in given_roles))) == len(found)


def test_a_turn_begins_when_the_user_speaks():
    found = turns.group(
        lines(said("user"), said("assistant"), said("user"), said("tool"), said("assistant"), said("user"))
    )
    assert [len(turn.lines) for turn in found] == [2, 3, 1]


def test_an_answer_without_its_question_is_a_turn_of_its_own():
    found = turns.group(lines(said("user", "v2"), said("user", "c"), said("assistant", "c2")))
    assert [[record["content"] for record in turn.records] for turn in found] == [["v2"], ["c", "c2"]]


@given(st.text(max_size=40), st.text(max_size=40), st.integers(1, 10**9))
def test_the_number_of_the_last_turn_stands_in_the_last_bytes(user, assistant, number):
    data = turns.new_lines(user, assistant, ts="t", id="i", number=number)
    assert turns.last_number(data[-64:]) == number


@given(st.text(max_size=40))
def test_no_text_can_pretend_to_be_the_number_of_a_turn(text):
    for content in (text, text + '"turn": 5}', '"turn": 5}\n'):
        assert turns.last_number(dump_line(said("user", content))) is None


def test_turns_go_to_the_day_they_began_in_the_zone():
    found = turns.group(
        lines(said("user", ts="2026-11-29T23:30:00Z"), said("assistant"), said("user", ts="2026-11-30T00:30:00Z"))
    )
    assert turns.by_day(found, UTC, NOW) == {"20261129": [0], "20261130": [1]}
    assert turns.by_day(found, ZoneInfo("Asia/Shanghai"), NOW) == {"20261130": [0, 1]}


def test_turns_without_a_time_join_the_earliest_day_of_the_batch():
    found = turns.group(
        lines(said("user"), said("user", ts="2026-11-20T00:00:00Z"), said("user", ts="2026-11-10T00:00:00Z"))
    )
    assert turns.by_day(found, UTC, NOW) == {"20261110": [0, 2], "20261120": [1]}
    assert turns.by_day(found[:1], UTC, NOW) == {"20261130": [0]}


def test_a_line_others_would_stumble_over_is_written_anew():
    [line] = load_lines('{"role": "user", "content": "a\u2028b\x85"}\n'.encode())
    assert turns.healed(line) == b'{"role": "user", "content": "a\\u2028b\\u0085"}\n'
    [line] = load_lines(b'{"role": "user", "content": "a\xff"}')
    assert turns.healed(line).decode() == '{"role": "user", "content": "a\ufffd"}\n'
    [line] = load_lines(b'{"role":"user","content":"as it is"}')
    assert turns.healed(line) == line.raw + b"\n"


def test_an_unknown_role_speaks_as_the_user_and_content_is_always_text():
    message = turns.prompt_message({"role": "odd", "content": [1]})
    assert message == {"role": "user", "content": "[1]"}
    assert turns.prompt_message({"role": "tool", "content": None, "tool_call_id": "c"}).tool_call_id == "c"
