"""The web as a device: one request, guarded like a tool's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from amrita_plugin_memory.amos.errors import HttpFailed
from amrita_plugin_memory.amos.sandbox import HttpBroker, HttpPolicy, HttpRequest
from amrita_plugin_memory.kernel.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class HttpRequestConfig:
    """What to ask; ``params`` go behind the URL, a ``body`` that is no text or bytes is sent as JSON. Seconds."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None
    timeout: float = 10.0


@dataclass(frozen=True, slots=True)
class HttpResult:
    """What came back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def ok(self) -> bool:
        """True below 400."""
        return self.status < 400

    @property
    def text(self) -> str:
        """The body in the charset its header names, UTF-8 otherwise; foreign bytes are replaced."""
        charset = self.headers.get("content-type", "").partition("charset=")[2].split(";")[0].strip(" \"'")
        try:
            return self.body.decode(charset or "utf-8", "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            HttpFailed: it is none.

        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise HttpFailed("返回内容不是有效的 JSON，请检查接口") from error


@dataclass(frozen=True, slots=True)
class HttpDevice:
    """Sends requests through one broker; by default to every public address, on the usual ports."""

    broker: HttpBroker = field(default_factory=lambda: HttpBroker(HttpPolicy(hosts=("*",))))

    async def request(self, config: HttpRequestConfig | str, **settings: Any) -> HttpResult:
        """Send one request: ``request(HttpRequestConfig(…))`` or ``request(url, method=…, …)``.

        Raises:
            HttpRefused: the policy forbids it.
            HttpFailed: no answer in time, or none that is HTTP.
            InvalidInput: a body that cannot be written as JSON.

        """
        asked = HttpRequestConfig(config, **settings) if isinstance(config, str) else config
        url = asked.url
        if asked.params:
            url += ("&" if "?" in url else "?") + urlencode(dict(asked.params), doseq=True)
        body, kind = _body(asked.body)
        headers = dict(asked.headers)
        if kind and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = kind
        answer = await self.broker.fetch(HttpRequest(url, asked.method, headers, body), within=asked.timeout)
        return HttpResult(answer.status, answer.headers, answer.body, answer.url)


def _body(body: object) -> tuple[bytes, str]:
    if body is None:
        return b"", ""
    if isinstance(body, bytes):
        return body, ""
    if isinstance(body, str):
        return body.encode("utf-8", "replace"), "text/plain; charset=utf-8"
    try:
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"), "application/json"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("请求内容不能写成 JSON，请检查") from error
