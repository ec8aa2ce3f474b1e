"""``urllib.request`` as tools see it in the child: the same calls, answered by the host's broker."""

from __future__ import annotations

import io
import types
import urllib.parse
from collections.abc import Callable, Mapping
from email.message import Message
from typing import Any, TypeAlias

Page: TypeAlias = tuple[int, dict[str, str], bytes, str]
Send: TypeAlias = Callable[[str, str, dict[str, str], bytes], Page]


class Request:
    """What to ask for."""

    def __init__(
        self,
        url: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        origin_req_host: str | None = None,
        unverifiable: bool = False,
        method: str | None = None,
    ) -> None:
        self.full_url = url
        self.data = data
        self.headers = dict(headers or {})
        self.method = method

    def add_header(self, key: str, val: str) -> None:
        """Set one header."""
        self.headers[key] = val

    def get_method(self) -> str:
        """GET, or POST with data."""
        return self.method or ("GET" if self.data is None else "POST")

    def get_full_url(self) -> str:
        """The URL."""
        return self.full_url


class Response(io.BytesIO):
    """What came back, as a file."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, url: str) -> None:
        super().__init__(body)
        self.status = self.code = status
        self.url = url
        self.reason = self.msg = ""
        self.headers = Message()
        for name, value in headers.items():
            self.headers[name] = value

    def getcode(self) -> int:
        """The status."""
        return self.status

    def geturl(self) -> str:
        """Where the last redirect led."""
        return self.url

    def info(self) -> Message:
        """The headers."""
        return self.headers

    def getheader(self, name: str, default: Any = None) -> Any:
        """One header."""
        return self.headers.get(name, default)


def web_module(send: Send) -> types.ModuleType:
    """The module, with ``send`` behind it."""

    def urlopen(url: str | Request, data: bytes | None = None, timeout: float | None = None, **_: Any) -> Response:
        request = url if isinstance(url, Request) else Request(url)
        body = request.data if data is None else data
        headers = {str(name): str(value) for name, value in request.headers.items()}
        if body is not None and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        method = request.method or ("GET" if body is None else "POST")
        status, got, content, where = send(method, str(request.full_url), headers, bytes(body or b""))
        if status >= 400:
            raise OSError(f"HTTP Error {status}")
        return Response(status, got, content, where)

    module = types.ModuleType("urllib.request")
    parts = {"Request": Request, "urlopen": urlopen, "quote": urllib.parse.quote, "unquote": urllib.parse.unquote}
    module.__dict__.update(parts)
    return module
