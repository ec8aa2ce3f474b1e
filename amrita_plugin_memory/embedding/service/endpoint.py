"""The address of a service, as people write it and as it is used, shown and compared.

Pure: values in, values out.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from amrita_plugin_memory.kernel.errors import ConfigInvalid

ServiceProtocol: TypeAlias = Literal["ollama-embed", "openai"]

_OLLAMA_TAILS: Final = ("/api/embeddings", "/api/embed", "/api", "/v1/embeddings", "/v1")
_OPENAI_TAILS: Final = ("/embeddings",)
_DEFAULT_PORT: Final = {"http": 80, "https": 443}
_OLLAMA_PORT: Final = 11434


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A service address in its parts.

    ``base`` is what a client is given; ``identity`` is equal for every spelling of the same address and goes into
    fingerprints; ``user`` and ``password`` are what stood before the ``@`` and are never in the other two.
    """

    protocol: ServiceProtocol
    base: str
    identity: str
    loopback: bool
    user: str = ""
    password: str = field(default="", repr=False)


def normalise(url: str, protocol: ServiceProtocol) -> Endpoint:
    """Read an ``EMBEDDING_MODEL_URL``; ``/api``, ``/api/embed``, ``/v1`` and ``/embeddings`` may be there or not.

    Raises:
        ConfigInvalid: no host, another scheme than http(s), an impossible port, or a query in the address.

    """
    parts = _split(url)
    host = (parts.hostname or "").rstrip(".").lower()
    port = _port(parts, bare="://" not in url, protocol=protocol)
    path = _path(parts.path, protocol)
    standard = port == _DEFAULT_PORT[parts.scheme]
    shown = _bracketed(host) + ("" if standard else f":{port}")
    loopback = is_loopback(host)
    return Endpoint(
        protocol=protocol,
        base=f"{parts.scheme}://{shown}{path}",
        identity=f"{parts.scheme}://{'127.0.0.1' if loopback else _bracketed(host)}:{port}{path}",
        loopback=loopback,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def looks_like(url: str, *, has_key: bool) -> ServiceProtocol:
    """The protocol an address looks like, for when nothing answers there: by port, path, key and TLS."""
    try:
        parts = _split(url)
    except ConfigInvalid:
        return "openai"
    path = parts.path.rstrip("/")
    if parts.port == _OLLAMA_PORT or path in ("/api", "/api/embed", "/api/embeddings"):
        return "openai" if path.startswith("/v1") else "ollama-embed"
    return "openai" if path or has_key or parts.scheme == "https" else "ollama-embed"


def is_loopback(host: str) -> bool:
    """True for this machine's own addresses: localhost, 127.0.0.0/8, ::1 and the unspecified address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _split(url: str) -> SplitResult:
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        _ = parts.port
    except ValueError as e:
        raise ConfigInvalid("EMBEDDING_MODEL_URL 不是有效的地址，请写成 http://主机:端口 的样子") from e
    if parts.scheme not in _DEFAULT_PORT or not parts.hostname:
        raise ConfigInvalid("EMBEDDING_MODEL_URL 不是有效的地址，请写成 http://主机:端口 的样子")
    if parts.query or parts.fragment:
        raise ConfigInvalid("EMBEDDING_MODEL_URL 里不能带 ? 或 # 之后的内容，密钥请写在 EMBEDDING_MODEL_API_KEY")
    return parts


def _port(parts: SplitResult, *, bare: bool, protocol: ServiceProtocol) -> int:
    if parts.port:
        return parts.port
    # Ollama's own client reads a bare host this way.
    return _OLLAMA_PORT if bare and protocol == "ollama-embed" else _DEFAULT_PORT[parts.scheme]


def _path(path: str, protocol: ServiceProtocol) -> str:
    path = path.rstrip("/")
    for tail in _OLLAMA_TAILS if protocol == "ollama-embed" else _OPENAI_TAILS:
        if path.endswith(tail):
            path = path.removesuffix(tail).rstrip("/")
            break
    return path or ("/v1" if protocol == "openai" else "")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
