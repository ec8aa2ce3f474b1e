"""One HTTP configuration under both client packages, and the one place where a key meets a request.

The key travels in a request hook, not in the clients: the ``openai`` client refuses an empty key and would send a
made-up one, the ``ollama`` client would take ``OLLAMA_API_KEY`` of the environment for any server. Addresses are
used without what stands before the ``@``, because HTTP libraries log the address of every request.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from .endpoint import Endpoint

CONNECT_SECONDS: Final = 5.0
PLACEHOLDER_KEY: Final = "unused"
_AMBIENT: Final = ("openai-organization", "openai-project")


class _Request(Protocol):
    @property
    def headers(self) -> Any: ...  # a mutable, case-insensitive mapping in httpx and httpx2 alike


Hook: TypeAlias = Callable[[_Request], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Access:
    """Where and as whom: an endpoint, the key (empty for none) and the seconds one request may take."""

    endpoint: Endpoint
    key: str = field(default="", repr=False)
    timeout: float = 30.0

    @property
    def authorization(self) -> str:
        """The header's value; the key goes before a user name in the address; empty for neither."""
        if self.key:
            return f"Bearer {self.key}"
        if not self.endpoint.user:
            return ""
        pair = f"{self.endpoint.user}:{self.endpoint.password}"
        return "Basic " + base64.b64encode(pair.encode()).decode()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        return tuple(secret for secret in (self.key, self.endpoint.password, self.authorization) if secret)


def client_options(access: Access) -> dict[str, Any]:
    """Keyword arguments that ``httpx.AsyncClient`` and ``httpx2.AsyncClient`` both understand, as plain values.

    Proxies come from the environment, except for loopback addresses; a redirect is an answer, never followed
    (it would turn POST into GET, and carry texts to an address nobody configured).
    """
    seconds = access.timeout
    plain = access.endpoint.loopback and access.endpoint.base.startswith("http://")
    return {
        "timeout": (min(CONNECT_SECONDS, seconds), seconds, seconds, seconds),
        "trust_env": not access.endpoint.loopback,
        "follow_redirects": False,
        # Loading the certificate authorities takes 0.2 s of CPU; without a proxy, http:// to loopback never uses them.
        "verify": not plain,
        "event_hooks": {"request": [_authorise(access.authorization)], "response": []},
    }


def _authorise(value: str) -> Hook:
    async def hook(request: _Request) -> None:
        for name in ("authorization", *_AMBIENT):
            request.headers.pop(name, None)
        if value:
            request.headers["authorization"] = value

    return hook


class BodiesStayOut(logging.Filter):
    """Drops the one DEBUG record of older ``openai`` clients that prints whole request bodies, that is memories."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False for that record."""
        return not str(record.msg).startswith("Request options")


def keep_bodies_out_of_logs() -> None:
    """Put the filter on the client's logger, once."""
    logger = logging.getLogger("openai._base_client")
    if not any(isinstance(f, BodiesStayOut) for f in logger.filters):
        logger.addFilter(BodiesStayOut())
