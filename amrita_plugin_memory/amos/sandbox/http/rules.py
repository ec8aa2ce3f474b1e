"""Which URLs, hosts and addresses may be reached. Pure: values in, values out.

Names are judged before they are resolved, addresses after: ``127.1``, ``0x7f.1`` and ``2130706433`` are names here and
loopback once the resolver has answered. The networks listed beside ``is_global`` are those it calls global although
they lead elsewhere (IANA special-purpose registries; 6to4, NAT64, Teredo, IPv4-compatible, cloud metadata).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeAlias
from urllib.parse import quote, urljoin, urlsplit

from amrita_plugin_memory.amos.errors import HttpRefused

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

_DENIED: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "::/96", "64:ff9b::/96",
        "64:ff9b:1::/48", "100::/64", "2001::/23", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fec0::/10",
    )
)  # fmt: skip
_PORTS: Final = {"http": 80, "https": 443}
_SAFE_HEADERS: Final = frozenset(("accept", "accept-language", "user-agent"))
_OURS: Final = frozenset(
    ("host", "connection", "content-length", "transfer-encoding", "accept-encoding", "cookie", "te", "upgrade",
     "trailer", "expect", "keep-alive", "proxy-authorization", "proxy-connection")
)  # fmt: skip
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True, slots=True)
class HttpPolicy:
    """Bounds of one way out.

    ``hosts`` are globs over ASCII host names, empty means nobody; ``private`` opens addresses that are not public and
    is for services the operator configured, never for tools. Sizes are bytes, times seconds.
    """

    hosts: tuple[str, ...] = ()
    ports: frozenset[int] = frozenset((80, 443))
    private: bool = False
    denied_addresses: frozenset[str] = frozenset()
    max_body: int = 1 << 20
    max_request: int = 256 << 10
    max_redirects: int = 3
    connect_timeout: float = 5.0
    timeout: float = 10.0

    def refuse_address(self, address: str) -> None:
        """Raise HttpRefused for an address that may not be connected to."""
        why = "在禁止名单里" if address in self.denied_addresses else "" if self.private else objection(address)
        if why:
            raise HttpRefused(f"目标地址{why}，已拒绝访问，请改用公网地址")

    def target(self, url: str) -> Target:
        """The URL taken apart and found acceptable by name.

        Raises:
            HttpRefused: another scheme, user info, a port or a host that is not on the list, or no URL at all.

        """
        target = Target.parse(url)
        if target.port not in self.ports and not self.private:
            raise HttpRefused(f"端口 {target.port} 不在允许的端口里，请改用 {'、'.join(map(str, sorted(self.ports)))}")
        if not any(fnmatchcase(target.host, pattern.lower()) for pattern in self.hosts):
            raise HttpRefused(f"主机 {target.host[:80]} 不在 allow_hosts 名单里，请让管理员加入后再试")
        return target


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: ASCII host without brackets, and path with query."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> Target:
        """Take a URL apart, strictly.

        Raises:
            HttpRefused: not an absolute http or https URL without user info.

        """
        if not url.isprintable() or "\\" in url or len(url) > 8192 or any(map(str.isspace, url)):
            raise HttpRefused("网址含有空白、反斜杠或不可见字符，或者过长，请检查写法")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise HttpRefused("网址写法不对，请检查") from error
        if parts.scheme not in _PORTS or not host:
            raise HttpRefused("网址必须以 http:// 或 https:// 开头并写明主机")
        if "@" in parts.netloc:
            raise HttpRefused("网址里不能带用户名或密码，请改用请求头")
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
        return cls(parts.scheme, _ascii(host), port or _PORTS[parts.scheme], f"{path}?{query}" if query else path)

    @property
    def origin(self) -> tuple[str, str, int]:
        """What two requests must share for one to trust the other's headers."""
        return self.scheme, self.host, self.port

    @property
    def netloc(self) -> str:
        """Host and port as the Host header writes them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole, in the form that is sent."""
        return f"{self.scheme}://{self.netloc}{self.path}"

    def join(self, location: str) -> str:
        """The absolute URL a Location header names."""
        try:
            return urljoin(self.url, location)
        except ValueError as error:
            raise HttpRefused("对方给出的跳转地址写法不对") from error


def objection(address: str) -> str:
    """Why an IP address is not a public unicast one, as a Chinese clause; "" when it is."""
    try:
        ip: Address = ipaddress.ip_address(address.split("%", 1)[0])
    except ValueError:
        return "不是有效的 IP"
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if not ip.is_global or ip.is_multicast or ip.is_reserved or ip.is_unspecified:
        return "不是公网地址"
    return "有特殊用途" if any(ip in net for net in _DENIED if net.version == ip.version) else ""


def headers_to_send(given: Mapping[str, str]) -> dict[str, str]:
    """The caller's headers without those that belong to the connection.

    Raises:
        HttpRefused: too many, too long, or with line breaks in them.

    """
    if len(given) > 64 or sum(len(name) + len(value) for name, value in given.items()) > 16_384:
        raise HttpRefused("请求头太多或太长，请精简")
    for name, value in given.items():
        text = name + value
        if not name or not name.isascii() or not text.isprintable() or any(sign in name for sign in " :"):
            raise HttpRefused("请求头含有换行或不可用的字符，请检查")
    return {name: value for name, value in given.items() if name.lower() not in _OURS}


def headers_across_origins(headers: Mapping[str, str]) -> dict[str, str]:
    """What may be told to another origin after a redirect: nothing that could hold a secret."""
    return {name: value for name, value in headers.items() if name.lower() in _SAFE_HEADERS}


def _ascii(host: str) -> str:
    try:
        name = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise HttpRefused("网址的主机名不可用，请检查写法") from error
    name = name.lower().rstrip(".")
    if not name or len(name) > 253:
        raise HttpRefused("网址的主机名不可用，请检查写法")
    return name
