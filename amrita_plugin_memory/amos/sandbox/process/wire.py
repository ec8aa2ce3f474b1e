"""Frames between the host and a child that is taken for hostile: four bytes of length, then JSON of bounded size."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import struct
from typing import Any, Final, TypeGuard, cast

from amrita_plugin_memory.amos.errors import HttpFailed, HttpRefused, ToolCodeError
from amrita_plugin_memory.amos.sandbox.http import HttpRequest
from amrita_plugin_memory.amos.sandbox.ports import Fetch

MAX_FRAME: Final = 2 << 20  # bytes a child may send at once


async def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Write one frame."""
    data = json.dumps(message).encode()
    await asyncio.get_running_loop().sock_sendall(channel, struct.pack(">I", len(data)) + data)


async def receive(channel: socket.socket) -> dict[str, Any] | None:
    """Read one frame; None when the child has gone.

    Raises:
        ToolCodeError: the frame is too long or no JSON object.

    """
    head = await _exactly(channel, 4)
    if head is None:
        return None
    (size,) = struct.unpack(">I", head)
    if size > MAX_FRAME:
        raise ToolCodeError("工具的回答过大，已被停止")
    data = await _exactly(channel, size)
    if data is None:
        return None
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ToolCodeError("工具的回答不是有效的格式，已被停止") from error
    if not isinstance(message, dict):
        raise ToolCodeError("工具的回答不是有效的格式，已被停止")
    return cast("dict[str, Any]", message)


async def serve(channel: socket.socket, request: object, fetch: Fetch) -> None:
    """Answer a child's question for a web page."""
    try:
        answer = await fetch(_request(request))
    except HttpRefused as error:
        await send(channel, {"error": "refused", "message": str(error)})
    except HttpFailed as error:
        await send(channel, {"error": "failed", "message": str(error)})
    else:
        body = base64.b64encode(answer.body).decode()
        await send(channel, {"status": answer.status, "headers": answer.headers, "body": body, "url": answer.url})


def _request(request: object) -> HttpRequest:
    parts = cast("list[object]", request) if isinstance(request, list) else []
    if len(parts) == 4:
        method, url, headers, body = parts
        if isinstance(method, str) and isinstance(url, str) and isinstance(body, str) and _is_headers(headers):
            try:
                return HttpRequest(url, method, headers, base64.b64decode(body))
            except ValueError as error:
                raise HttpFailed("请求内容不是有效的编码") from error
    raise HttpFailed("请求格式不对")


def _is_headers(value: object) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(isinstance(text, str) for text in cast("dict[str, Any]", value).values())


async def _exactly(channel: socket.socket, size: int) -> bytes | None:
    loop = asyncio.get_running_loop()
    data = bytearray()
    while len(data) < size:
        try:
            chunk = await loop.sock_recv(channel, min(size - len(data), 1 << 16))
        except OSError:
            return None
        if not chunk:
            return None
        data += chunk
    return bytes(data)
