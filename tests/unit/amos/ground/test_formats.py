import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.ground import formats

records = st.dictionaries(
    st.text(max_size=5), st.one_of(st.text(max_size=30), st.integers(), st.none(), st.booleans()), max_size=5
)


@given(st.lists(records, max_size=8))
def test_records_read_back_as_they_were_written(wanted):
    assert formats.load_records(formats.dump_lines(wanted)) == json.loads(json.dumps(wanted).encode("utf-8", "replace"))


@given(st.lists(records, max_size=5))
def test_the_reference_splits_our_lines_where_we_do(wanted):
    text = formats.dump_lines(wanted).decode()
    assert len(text.splitlines()) == len(wanted)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read_as_lines(data):
    for line in formats.load_lines(data):
        assert data[line.at : line.at + len(line.raw)] == line.raw


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b'\xef\xbb\xbf{"a":1}\n', [{"a": 1}]),
        (b'{"a":1}\r\n{"a":2}\r\n', [{"a": 1}, {"a": 2}]),
        (b'{"a":1}\n[1]\n"x"\n7\nnull\n{"a":2}', [{"a": 1}, {"a": 2}]),
        (b'{"a":1}\n{"a":\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
        ('{"a":"x\u2028y"}\n'.encode(), [{"a": "x\u2028y"}]),
        (b'{"a":"\xff"}\n', [{"a": "\ufffd"}]),
        (b"[" * 100_000 + b'\n{"a":1}\n', [{"a": 1}]),
    ],
)
def test_damage_costs_at_most_its_own_line(data, wanted):
    assert formats.load_records(data) == wanted


def test_text_loses_bom_and_carriage_returns_only():
    assert formats.decode(b"\xef\xbb\xbfa\r\nb\rc\xff") == "a\nb\nc\ufffd"


def test_a_lone_surrogate_is_written_as_a_question_mark():
    assert formats.encode("a\ud800b") == b"a?b"
    assert formats.load_records(formats.dump_line({"a": "\ud800"})) == [{"a": "?"}]
