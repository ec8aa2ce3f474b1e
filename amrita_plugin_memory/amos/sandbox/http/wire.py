"""One HTTP exchange over a connection whose address was checked: resolve once, check every answer, connect to it.

With the broker this is one of two files of the room that know an HTTP library (httpcore; the other end of TLS is still
verified against the name that was asked for).
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import httpcore

from amrita_plugin_memory.amos.errors import HttpFailed, HttpRefused

from .rules import HttpPolicy

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
_ADDRESSES: Final = 4  # how many of a name's addresses are tried
_CHUNK: Final = 65_536


async def resolve(host: str, port: int) -> list[str]:
    """Addresses of a name, as the system's resolver gives them; strange spellings of numbers come out as addresses."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HttpFailed(f"找不到主机 {host[:80]}，请检查网址") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def network() -> httpcore.AsyncNetworkBackend:
    """Sockets of the running event loop."""
    return cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())


@dataclass(frozen=True, slots=True)
class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to an address only after the policy has seen every address of the name."""

    policy: HttpPolicy
    resolve: Resolve
    inner: httpcore.AsyncNetworkBackend

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the base class asks for it
        local_address: str | None = None,
        *more: Any,
        **options: Any,
    ) -> httpcore.AsyncNetworkStream:
        """A stream to the first of the checked addresses that answers."""
        addresses = await self.resolve(host, port)
        for address in addresses:
            self.policy.refuse_address(address)
        failure: Exception = HttpFailed(f"找不到主机 {host[:80]}，请检查网址")
        for address in addresses[:_ADDRESSES]:
            try:
                return await self.inner.connect_tcp(address, port, timeout, local_address, *more, **options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the base class asks for it
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Never."""
        raise HttpRefused("不能访问本机套接字")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


async def read_body(chunks: AsyncIterable[bytes], encoding: str, limit: int) -> bytes:
    """The decoded body; never more than ``limit`` bytes are held, whatever the compression ratio.

    Raises:
        HttpFailed: an encoding that was not asked for, damaged data, or a body above the limit.

    """
    decode = _decoder(encoding)
    body = bytearray()
    async for chunk in chunks:
        for at in range(0, len(chunk), _CHUNK):
            body += decode(chunk[at : at + _CHUNK], limit + 1 - len(body))
            if len(body) > limit:
                raise HttpFailed(f"返回内容超过 {limit // 1024} KiB 的上限，请缩小请求范围")
    return bytes(body)


def _decoder(encoding: str) -> Callable[[bytes, int], bytes]:
    kind = encoding.strip().lower()
    if kind in ("", "identity"):
        return lambda data, room: data[:room]
    if kind not in ("gzip", "x-gzip", "deflate"):
        raise HttpFailed("返回内容用了不支持的压缩方式，请换一个接口")
    machine = zlib.decompressobj(wbits=47 if kind != "deflate" else 15)

    def decode(data: bytes, room: int) -> bytes:
        try:
            return machine.decompress(data, room)
        except zlib.error as error:
            raise HttpFailed("返回内容的压缩数据已损坏，请稍后再试") from error

    return decode
