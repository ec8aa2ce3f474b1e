from __future__ import annotations

import pytest

from amrita_plugin_memory.amos.devices import negotiate

HERE = {
    "llm": {"chat": True, "function_calling": True},
    "http": True,
    "sandbox": False,
    "context_length": 8000,
    "models": ["a", "b"],
}


@pytest.mark.parametrize(
    "required",
    [
        {},
        {"http": True},
        {"llm": {"chat": True}},
        {"llm": "chat"},
        {"context_length": 4000},
        {"models": ["a"]},
        {"sandbox": False},
        {"nothing": None},
    ],
)
def test_what_is_there_is_not_missing(required: dict[str, object]) -> None:
    assert negotiate(required, HERE).compatible


@pytest.mark.parametrize(
    ("required", "missing"),
    [
        ({"sandbox": True}, ["sandbox"]),
        ({"llm": {"vision": True, "chat": True}}, ["llm.vision"]),
        ({"context_length": 16000}, ["context_length"]),
        ({"models": ["a", "c"]}, ["models"]),
        ({"gpu": {"memory": 8}}, ["gpu.memory"]),
        ({"context_length": "long"}, ["context_length"]),
    ],
)
def test_what_is_not_there_is_named_and_the_root_runs_on(required: dict[str, object], missing: list[str]) -> None:
    check = negotiate(required, HERE)
    assert list(check.missing) == missing
    assert check.degraded
    assert all("降级" in warning for warning in check.warnings)
