from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.errors import InvalidAssetError, SandboxLimit, ToolResultError
from amrita_plugin_memory.amos.sandbox.rules import (
    SandboxOptions,
    clean_message,
    gate_params,
    gate_source,
    map_text,
    read_result,
)
from amrita_plugin_memory.kernel.errors import InvalidInput

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_every_json_value_comes_through_as_it_is(value: object) -> None:
    assert read_result(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[1, Infinity]",
        "-Infinity",
        '"\\ud800"',
        '{"\\udfff": 1}',
        "[" * 100 + "]" * 100,
        "x",
        "",
        '"' + "a" * 600_000 + '"',
        "1e999",
        None,
        5,
        "[" * 100_000,
    ],
)
def test_what_is_no_plain_json_is_refused_as_a_result(text: object) -> None:
    with pytest.raises(ToolResultError):
        read_result(text)


def test_a_big_integer_is_json() -> None:
    assert read_result(str(2**70)) == 2**70


@pytest.mark.parametrize("source", [None, b"x", "a\0b", "x = '\ud800'"])
def test_source_that_is_no_text_is_refused(source: object) -> None:
    with pytest.raises(InvalidAssetError):
        gate_source(source)


def test_source_is_bounded_in_bytes() -> None:
    assert gate_source("x" * 65_536)
    with pytest.raises(SandboxLimit):
        gate_source("中" * 30_000)


@pytest.mark.parametrize("params", [[1], "x", {"a": {1, 2}}, {"a": float("nan")}, {"a": object()}])
def test_parameters_must_be_a_json_object(params: object) -> None:
    with pytest.raises(InvalidInput):
        gate_params(params)


def test_parameters_are_bounded() -> None:
    with pytest.raises(SandboxLimit):
        gate_params({"a": "x" * 70_000})


def test_texts_are_changed_in_every_depth_keys_too() -> None:
    assert map_text({"a": ["b", {"c": "d"}, 1]}, str.upper) == {"A": ["B", {"C": "D"}, 1]}


def test_an_error_text_says_no_path_of_this_machine_and_is_bounded() -> None:
    text = clean_message("in /srv/bot/.venv/lib/x.py, see http://a.test/b/c \x07" + "z" * 9000)
    assert "/root" not in text
    assert "http://a.test/b/c" in text
    assert "\x07" not in text
    assert len(text) == 2000


def test_options_are_read_in_the_seeds_and_the_references_spelling() -> None:
    options = SandboxOptions.of(
        {
            "timeout": 1500,
            "allowNetwork": True,
            "allow_hosts": ["a.test"],
            "memoryLimitMB": 32,
            "env_whitelist": ["W_*"],
        }
    )
    assert options == SandboxOptions(
        timeout=1.5, allow_network=True, hosts=("a.test",), memory_mb=32, env_whitelist=("W_*",)
    )


@pytest.mark.parametrize(
    "given_",
    [
        {"tiemout": 1},
        {"timeout": "x"},
        {"engine": "exec"},
        {"allow_hosts": "a.test"},
        {"timeout": 0},
        {"memory_mb": 4096},
    ],
)
def test_an_unusable_option_is_refused(given_: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        SandboxOptions.of(given_)
