"""How a refusal becomes a lesson, with words that real servers use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amrita_plugin_memory.embedding.service.faults import ServiceFault, kind_of_status
from amrita_plugin_memory.embedding.service.quirks import Quirks, lesson

FRESH = Quirks(batch=64)


def _refusal(words: str, status: int = 400) -> ServiceFault:
    return ServiceFault("request", base="http://e.example", status=status, detail=words)


@pytest.mark.parametrize(
    ("words", "sent", "limit"),
    [
        ("batch size is invalid, it should not be larger than 10.: input.contents", 64, 10),
        ("input batch size 64 > maximum allowed batch size 32 (batch)", 64, 32),
        ("input数组最大不得超过64条", 100, 64),
        ("at most 16 inputs are allowed", 20, 16),
        ("Too many inputs", 20, 10),
        ("Invalid 'input': maximum array length is 2048", 4000, 2048),
    ],
)
def test_a_limit_of_inputs_is_read_from_the_servers_words(words: str, sent: int, limit: int) -> None:
    assert lesson(FRESH, _refusal(words), sent=sent) == replace(FRESH, batch=limit)


@pytest.mark.parametrize(
    "words", ["Unrecognized request argument supplied: encoding_format", "encoding format 'float' is not supported"]
)
def test_a_named_encoding_format_is_given_up(words: str) -> None:
    assert lesson(FRESH, _refusal(words), sent=1) == replace(FRESH, encoding_format=False)


@pytest.mark.parametrize(
    "words",
    ["This model does not support specifying dimensions.", "matryoshka representation: dimensions is not supported"],
)
def test_named_dimensions_are_given_up(words: str) -> None:
    assert lesson(FRESH, _refusal(words), sent=1) == replace(FRESH, dimensions=False)


def test_without_words_the_optional_parts_go_first_and_then_the_batch_until_nothing_is_left() -> None:
    quirks, sent, seen = FRESH, 4, list[Quirks]()
    while (changed := lesson(quirks, _refusal("bad request"), sent=sent)) is not None:
        seen.append(changed)
        quirks, sent = changed, min(sent, changed.batch)
    assert [(q.encoding_format, q.dimensions, q.batch) for q in seen] == [
        (False, True, 64),
        (False, False, 64),
        (False, False, 2),
        (False, False, 1),
    ]


@pytest.mark.parametrize("kind", ["unreachable", "timeout", "busy", "server", "key", "moved", "vectors"])
def test_what_is_no_refusal_of_the_request_teaches_nothing(kind: str) -> None:
    assert lesson(FRESH, ServiceFault(kind, base="http://e.example"), sent=9) is None  # pyright: ignore[reportArgumentType]


def test_a_missing_route_is_not_a_missing_model() -> None:
    route = ServiceFault("missing", base="http://e.example", status=404, detail="404 page not found")
    model = ServiceFault("missing", base="http://e.example", status=404, detail='model "x" not found')
    assert lesson(FRESH, route, sent=1) == replace(FRESH, old_route=True)
    assert lesson(FRESH, model, sent=1) is None


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("input must have less than 512 tokens", 413),
        ("Input validation error: `inputs` must have less than 512 tokens. Given: 800", 413),
        ("This model's maximum context length is 512 tokens. However, you requested 800 tokens", 400),
        ("the input length exceeds the context length", 400),
        ("input (800 tokens) is too large to process. increase the physical batch size (current batch size: 512)", 500),
        ("输入文本过长，请缩短后重试", 400),
        ("input 长度超限", 400),
        ("Payload Too Large", 413),
    ],
)
def test_a_text_that_is_too_long_is_halved_until_it_is_short_enough_to_blame_the_server(
    words: str, status: int
) -> None:
    fault = ServiceFault(kind_of_status(status), base="http://e.example", status=status, detail=words)
    quirks, longest, seen = FRESH, 800, list[int]()
    while (changed := lesson(quirks, fault, sent=1, longest=longest)) is not None:
        assert changed == replace(quirks, chars=changed.chars)
        quirks, longest = changed, changed.chars
        seen.append(longest)
    assert seen == [400, 200, 100, 64]


def test_the_longest_of_a_batch_is_shortened_and_the_batch_stays() -> None:
    refusal = _refusal("maximum context length is 512 tokens")
    assert lesson(FRESH, refusal, sent=20, longest=800) == replace(FRESH, chars=400)


@pytest.mark.parametrize(
    "words",
    ["Requested 310000 tokens, max 300000 tokens per request", "total tokens of the batch exceed 8192", "too large"],
)
def test_a_limit_of_the_whole_request_makes_smaller_batches_and_cuts_no_text(words: str) -> None:
    changed = lesson(FRESH, _refusal(words, 413), sent=20, longest=800)
    assert changed is not None
    assert changed == replace(FRESH, batch=changed.batch)
    assert changed.batch < 20


@pytest.mark.parametrize("words", ["invalid token", "Invalid authentication token provided"])
def test_a_token_that_is_a_key_shortens_nothing(words: str) -> None:
    bare = replace(FRESH, encoding_format=False, dimensions=False)
    assert lesson(bare, _refusal(words), sent=1, longest=800) is None
