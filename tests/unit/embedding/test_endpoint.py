"""Every way people write an address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.embedding.service.endpoint import is_loopback, normalise
from amrita_plugin_memory.kernel.errors import ConfigInvalid


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:11434", "http://127.0.0.1:11434/", "http://127.0.0.1:11434/api", "http://127.0.0.1:11434/api/",
        "http://127.0.0.1:11434/api/embed", "http://127.0.0.1:11434/api/embeddings", "http://127.0.0.1:11434/v1",
        "http://127.0.0.1:11434/v1/embeddings/", "127.0.0.1:11434", "127.0.0.1", " HTTP://127.0.0.1:11434 ",
    ],
)  # fmt: skip
def test_every_form_of_an_ollama_address_is_one_base(url: str) -> None:
    assert normalise(url, "ollama-embed").base == "http://127.0.0.1:11434"


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1"),
        ("https://api.openai.com:443/v1/embeddings", "https://api.openai.com/v1"),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
        ("https://open.bigmodel.cn/api/paas/v4/embeddings", "https://open.bigmodel.cn/api/paas/v4"),
        ("http://127.0.0.1:8080/embeddings", "http://127.0.0.1:8080/v1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
        ("http://模型.example:8080", "http://模型.example:8080/v1"),
    ],
)
def test_an_openai_address_gets_v1_only_where_it_has_no_path(url: str, base: str) -> None:
    assert normalise(url, "openai").base == base


@pytest.mark.parametrize(
    "other",
    ["http://localhost:11434/", "http://LOCALHOST:11434/api/embed", "http://[::1]:11434", "http://0.0.0.0:11434"],
)
def test_spellings_of_one_address_have_one_identity(other: str) -> None:
    assert normalise(other, "ollama-embed").identity == normalise("http://127.0.0.1:11434", "ollama-embed").identity


def test_a_default_port_written_out_changes_no_identity_but_another_port_does() -> None:
    plain = normalise("https://e.example/v1", "openai").identity
    assert normalise("https://E.example:443/v1/", "openai").identity == plain
    assert normalise("https://e.example:8443/v1", "openai").identity != plain
    assert normalise("http://e.example/v1", "openai").identity != plain


def test_user_and_password_are_kept_apart_from_everything_that_is_shown() -> None:
    endpoint = normalise("https://bob:p%40ss@e.example/v1", "openai")
    assert (endpoint.user, endpoint.password) == ("bob", "p@ss")
    assert "p@ss" not in repr(endpoint) + endpoint.base + endpoint.identity
    assert "bob" not in endpoint.base + endpoint.identity


@pytest.mark.parametrize(
    "url", ["", "http://", "ftp://h", "http://h:99999", "http://h:x", "http://h/v1?key=abc", "http://[::1"]
)
def test_an_unusable_address_is_a_sentence_without_the_address(url: str) -> None:
    with pytest.raises(ConfigInvalid, match="EMBEDDING_MODEL_URL") as caught:
        normalise(url, "openai")
    assert "abc" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_an_endpoint_or_a_sentence(url: str) -> None:
    for protocol in ("openai", "ollama-embed"):
        try:
            endpoint = normalise(url, protocol)
        except ConfigInvalid:
            continue
        assert normalise(endpoint.base, protocol).identity == endpoint.identity


@pytest.mark.parametrize(
    ("host", "yes"),
    [
        ("localhost", True),
        ("a.localhost", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("e.example", False),
    ],
)
def test_loopback_is_this_machine_only(host: str, yes: bool) -> None:
    assert is_loopback(host) is yes
