"""Keys, proxies and logs: what may travel where, and what may be written down."""

from __future__ import annotations

import asyncio
import base64
import logging
import traceback
from collections.abc import AsyncIterator

import pytest
from support.embed_server import EVER, EmbedServer

from amrita_plugin_memory.embedding import build_embedder
from amrita_plugin_memory.embedding.service.endpoint import ServiceProtocol, normalise
from amrita_plugin_memory.embedding.service.http import Access, client_options, keep_bodies_out_of_logs
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable
from amrita_plugin_memory.settings import EnvSettings

KEY = "sk-planted-0123456789"
PASSWORD = "planted-password"
MEMORY = "我的银行卡密码是一二三四五六"
BOTH = pytest.mark.parametrize("protocol", ["ollama-embed", "openai"])


@pytest.fixture
async def server() -> AsyncIterator[EmbedServer]:
    async with EmbedServer(models=["bge-m3"], embedding_models=["bge-m3"]) as running:
        yield running


async def _embed(url: str, protocol: ServiceProtocol, *, key: str = "", text: str = MEMORY) -> None:
    env = EnvSettings(embedding_model_url=url, embedding_proctol=protocol, embedding_model_api_key=key)  # pyright: ignore[reportArgumentType]
    embedder = build_embedder(env)
    try:
        await embedder.embed([text], purpose="query")
    finally:
        await embedder.aclose()


@BOTH
async def test_the_key_is_sent_as_a_bearer_token(server: EmbedServer, protocol: ServiceProtocol) -> None:
    server.faults.key = KEY
    await _embed(server.url, protocol, key=KEY)
    assert {r.headers.get("Authorization") for r in server.requests} == {f"Bearer {KEY}"}


@BOTH
async def test_without_a_key_no_authorization_is_sent_whatever_the_environment_holds(
    server: EmbedServer, protocol: ServiceProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OLLAMA_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)
    await _embed(server.url, protocol)
    for request in server.requests:
        assert "Authorization" not in request.headers
        assert KEY not in str(request.headers)


@BOTH
async def test_a_user_in_the_address_becomes_basic_authorization(
    server: EmbedServer, protocol: ServiceProtocol
) -> None:
    await _embed(server.url.replace("http://", f"http://bob:{PASSWORD}@"), protocol)
    wanted = "Basic " + base64.b64encode(f"bob:{PASSWORD}".encode()).decode()
    assert {r.headers.get("Authorization") for r in server.requests} == {wanted}


@BOTH
@pytest.mark.parametrize("fault", ["none", "key", "broken", "body", "hang"])
async def test_no_key_no_password_and_no_memory_is_logged_or_said_at_any_level(
    server: EmbedServer, protocol: ServiceProtocol, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults.key, server.faults.echo_key = ("other", True) if fault == "key" else ("", False)
    server.faults.broken = EVER if fault == "broken" else 0
    server.faults.error_body = f"cannot embed {MEMORY} for {KEY}" if fault == "body" else ""
    server.faults.hang = fault == "hang"
    said = ""
    with caplog.at_level(logging.DEBUG):
        for name in ("openai", "openai._base_client", "httpx", "httpx2", "httpcore", "httpcore2", "ollama"):
            caplog.set_level(logging.DEBUG, logger=name)
        try:
            url = server.url.replace("http://", f"http://bob:{PASSWORD}@")
            await asyncio.wait_for(_embed(url, protocol, key=KEY), 1.5 if fault == "hang" else 30)
        except (EmbeddingUnavailable, TimeoutError) as e:
            said = "".join(traceback.format_exception(e))
    written = "\n".join(record.getMessage() + str(record.args) for record in caplog.records) + said
    for secret in (KEY, PASSWORD, base64.b64encode(f"bob:{PASSWORD}".encode()).decode(), MEMORY):
        assert secret not in written


def test_the_record_with_which_older_openai_clients_print_bodies_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    keep_bodies_out_of_logs()
    keep_bodies_out_of_logs()
    logger = logging.getLogger("openai._base_client")
    assert len([f for f in logger.filters if type(f).__name__ == "BodiesStayOut"]) == 1
    with caplog.at_level(logging.DEBUG, logger="openai._base_client"):
        logger.debug("Request options: %s", {"json_data": {"input": [MEMORY]}})
        logger.debug("HTTP Response: %s", 200)
    assert [record.getMessage() for record in caplog.records] == ["HTTP Response: 200"]


def test_a_key_is_in_no_repr() -> None:
    access = Access(normalise(f"http://bob:{PASSWORD}@127.0.0.1:1", "openai"), KEY)
    assert KEY not in repr(access)
    assert PASSWORD not in repr(access)


@BOTH
async def test_a_loopback_address_is_reached_without_the_proxy_of_the_environment(
    server: EmbedServer, protocol: ServiceProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with EmbedServer() as proxy:
        _proxies(monkeypatch, proxy.url)
        await _embed(server.url, protocol)
        assert proxy.requests == []


@BOTH
async def test_another_address_is_reached_through_the_proxy_of_the_environment(
    protocol: ServiceProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with EmbedServer(models=["bge-m3"], embedding_models=["bge-m3"]) as proxy:
        _proxies(monkeypatch, proxy.url)
        await _embed("http://embedding.invalid:8080", protocol)
        assert {r.headers["Host"] for r in proxy.requests} == {"embedding.invalid:8080"}


def _proxies(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in ("NO_PROXY", "no_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", url)
    monkeypatch.setenv("http_proxy", url)


def test_certificates_are_checked_everywhere_but_on_plain_loopback() -> None:
    def checked(url: str) -> object:
        return client_options(Access(normalise(url, "openai")))["verify"]

    assert checked("https://api.example/v1") is True
    assert checked("https://127.0.0.1:8443") is True
    assert checked("http://api.example/v1") is True
    assert checked("http://127.0.0.1:8080") is False
