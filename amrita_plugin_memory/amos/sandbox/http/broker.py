"""The one guarded way out of the library, for tools and for the HTTP device.

Every hop is judged anew, redirects are followed by hand, no proxy of the environment and no cookie is used, bodies are
counted after decompression, and the whole has a deadline.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import httpcore

from amrita_plugin_memory.amos.errors import HttpFailed, HttpRefused

from . import wire
from .rules import METHODS, HttpPolicy, Target, headers_across_origins, headers_to_send

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_AGENT: Final = "amos-tool/2.0"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What to ask; header names keep the caller's spelling."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came back: lower-case header names, the decoded body, the URL of the last hop."""

    status: int
    headers: dict[str, str]
    body: bytes
    url: str


@dataclass(slots=True)
class HttpBroker:
    """Sends requests within one policy."""

    policy: HttpPolicy = field(default_factory=HttpPolicy)
    resolve: wire.Resolve = wire.resolve
    _tls: ssl.SSLContext | None = None

    async def fetch(self, request: HttpRequest, *, within: float | None = None) -> HttpResponse:
        """Send a request, follow at most ``max_redirects`` redirects, and give back the answer, whatever its status.

        Args:
            request: what to ask.
            within: seconds for everything, at most the policy's own.

        Raises:
            HttpRefused: the policy forbids it; nothing was sent to that place.
            HttpFailed: no answer, no HTTP, too slow or too big.

        """
        seconds = self.policy.timeout if within is None else min(within, self.policy.timeout)
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(_checked(request, self.policy))
        except (TimeoutError, httpcore.TimeoutException) as error:
            raise HttpFailed(f"对方在 {seconds:g} 秒内没有答完，请稍后再试") from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ConnectError, ssl.SSLError, OSError) as error:
            raise HttpFailed("连接失败，或对方的回答不是有效的 HTTP，请稍后再试") from error

    async def _follow(self, request: HttpRequest) -> HttpResponse:
        for _ in range(self.policy.max_redirects + 1):
            target = self.policy.target(request.url)
            response = await self._once(request, target)
            location = response.headers.get("location", "")
            if response.status not in _REDIRECTS or not location:
                return response
            request = _redirected(request, target, target.join(location), response.status)
        raise HttpFailed(f"跳转超过 {self.policy.max_redirects} 次，请直接给出最终网址")

    async def _once(self, request: HttpRequest, target: Target) -> HttpResponse:
        network = wire.CheckedNetwork(self.policy, self.resolve, wire.network())
        steps = dict.fromkeys(("connect", "read", "write", "pool"), self.policy.connect_timeout)
        steps["read"] = self.policy.timeout
        async with (
            httpcore.AsyncConnectionPool(
                ssl_context=await self._context(target), max_connections=1, retries=0, network_backend=network
            ) as pool,
            pool.stream(
                request.method.encode(),
                _address(target),
                headers=_headers(request, target),
                content=request.body or None,
                extensions={"timeout": steps},
            ) as answer,
        ):
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers[:100]}
            body = await wire.read_body(
                answer.aiter_stream(), headers.get("content-encoding", ""), self.policy.max_body
            )
        return HttpResponse(answer.status, headers, body, target.url)

    async def _context(self, target: Target) -> ssl.SSLContext | None:
        if target.scheme == "https" and self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        return self._tls


def _address(target: Target) -> httpcore.URL:
    return httpcore.URL(
        scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode("ascii")
    )


def _headers(request: HttpRequest, target: Target) -> list[tuple[bytes, bytes]]:
    given = {"User-Agent": _AGENT, "Accept": "*/*"}
    names = {name.lower() for name in request.headers}
    sent = {name: value for name, value in given.items() if name.lower() not in names} | dict(request.headers)
    sent |= {"Host": target.netloc, "Accept-Encoding": "gzip, deflate", "Connection": "close"}
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        sent["Content-Length"] = str(len(request.body))
    return [(name.encode("ascii"), value.encode("utf-8")) for name, value in sent.items()]


def _checked(request: HttpRequest, policy: HttpPolicy) -> HttpRequest:
    method = request.method.upper()
    if method not in METHODS:
        raise HttpRefused(f"请求方法只能是 {'、'.join(METHODS)}")
    if len(request.body) > policy.max_request:
        raise HttpRefused(f"请求内容超过 {policy.max_request // 1024} KiB 的上限，请缩短")
    return replace(request, method=method, headers=headers_to_send(request.headers))


def _redirected(request: HttpRequest, source: Target, url: str, status: int) -> HttpRequest:
    headers: Mapping[str, str] = request.headers
    if Target.parse(url).origin != source.origin:
        headers = headers_across_origins(headers)
    if status in (307, 308) or request.method in ("GET", "HEAD"):
        return replace(request, url=url, headers=headers)
    kept = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    return replace(request, url=url, headers=kept, method="GET", body=b"")
