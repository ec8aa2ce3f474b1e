"""A tiny HTTP server on a free loopback port that answers what the test says and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Asked], bytes]


@dataclass(slots=True)
class Loopback:
    """The running server; ``asked`` grows with every request."""

    port: int = 0
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def answer(body: bytes, status: int = 200, **headers: str) -> bytes:
    """The bytes of one HTTP/1.1 answer."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def loopback(respond: Answer) -> AsyncGenerator[Loopback]:
    """Serve on 127.0.0.1 until the block ends."""
    here = Loopback()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ", 2)
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
            asked = Asked(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))
            here.asked.append(asked)
            writer.write(respond(asked))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    here.port = server.sockets[0].getsockname()[1]
    try:
        yield here
    finally:
        server.close()
        await server.wait_closed()
