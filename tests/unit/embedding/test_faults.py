"""Sentences, and what a server's words may carry into them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import pytest

from amrita_plugin_memory.embedding.service.faults import (
    Kind,
    ServiceFault,
    from_exception,
    kind_of_status,
    scrub,
    seconds_to_wait,
)

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_is_one_sentence_that_says_what_to_do(kind: Kind) -> None:
    sentence = str(ServiceFault(kind, base="http://e.example", status=500, detail="细节"))
    assert "http://e.example" in sentence
    assert "，请" in sentence
    assert "\n" not in sentence
    assert "{" not in sentence


@pytest.mark.parametrize(
    ("status", "kind"),
    [(301, "moved"), (400, "request"), (401, "key"), (403, "key"), (404, "missing"), (413, "request"), (422, "request"),
     (429, "busy"), (500, "server"), (503, "server")],
)  # fmt: skip
def test_a_status_has_its_kind(status: int, kind: Kind) -> None:
    assert kind_of_status(status) == kind


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("Mon, 30 Nov 2026 12:00:30 GMT", 30.0), ("soon", None), ("", None),
     (None, None), ("nan", None), ("Mon, 30 Nov 2026 12:00:30", None)],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert seconds_to_wait(header, now=NOW) == seconds


def test_keys_and_texts_are_taken_out_of_the_servers_words() -> None:
    words = "Incorrect API key provided: sk-123 while embedding\n '我对花生过敏'"
    shown = scrub(words, secrets=["sk-123"], texts=["我对花生过敏"])
    assert shown == "Incorrect API key provided: … while embedding '…'"


def test_long_words_are_cut() -> None:
    assert len(scrub("x" * 10_000, secrets=[])) <= 120


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "连接被拒绝"),
        (OSError("[Errno -2] Name or service not known"), "找不到这台主机"),
        (OSError("CERTIFICATE_VERIFY_FAILED"), "TLS 证书有问题"),
        (OSError("reset"), "连接中断"),
        (TimeoutError(), "没有在限定时间内应答"),
    ],
)
def test_the_cause_of_a_broken_connection_is_found_in_the_chain(error: Exception, words: str) -> None:
    outer = RuntimeError("Connection error.")
    outer.__cause__ = error
    assert words in str(from_exception(outer, base="http://e.example"))
