"""The CPython child: import what tools may use, lock the doors for good, then read one request and run it.

The only file of the project that executes what a tool says; nothing imports it, it is started. Everything it writes is
taken for hostile by the host, so it guards nothing but itself. Frames are a length of four bytes and JSON.
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import os
import socket
import struct
import sys
import types
from typing import Any, Final

from . import bounds, bpf, calls, landlock
from .web import Page, web_module

_MODULES: Final = (
    "abc", "array", "asyncio", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "collections.abc",
    "colorsys", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions",
    "functools", "hashlib", "heapq", "hmac", "html", "html.parser", "inspect", "io", "itertools", "json", "keyword",
    "math", "numbers", "operator", "pathlib", "pprint", "queue", "random", "re", "secrets", "statistics", "string",
    "struct", "textwrap", "time", "tomllib", "traceback", "types", "typing", "unicodedata", "urllib.parse", "uuid",
    "warnings", "weakref", "xml.etree.ElementTree", "zlib", "zoneinfo", "_strptime",
)  # fmt: skip
_CODECS: Final = ("gbk", "gb18030", "big5", "idna", "utf-16", "utf-32", "latin-1", "ascii", "cp1252", "shift_jis")
_BASE_MEMORY: Final = 256 << 20  # what the interpreter itself maps
_OVERHEAD: Final = 2.0  # seconds of CPU for the interpreter's own start


def main(fd: int, memory_mb: int, seconds: float, most: int) -> None:
    """Never returns normally: the process ends with the reply."""
    channel = socket.socket(fileno=fd)
    _prepare()
    sink = _Sink(most)
    sys.stdout = sys.stderr = sink
    sys.modules["urllib.request"] = web = web_module(
        lambda method, url, headers, body: _ask(channel, method, url, (headers, body))
    )
    urllib = importlib.import_module("urllib")
    setattr(urllib, "request", web)  # noqa: B010 - the type checker knows the real one
    _confine(memory_mb, seconds)
    _send(channel, {"ready": True})
    request = _receive(channel)
    _send(channel, _answer(request, sink))
    os._exit(0)


def _prepare() -> None:
    for name in _MODULES:
        importlib.import_module(name)
    for name in _CODECS:
        "a".encode(name).decode(name)


def _confine(memory_mb: int, seconds: float) -> None:
    cpu = int(seconds + _OVERHEAD) + 1
    bounds.limit({"AS": _BASE_MEMORY + (memory_mb << 20), "CPU": cpu, "FSIZE": 0, "NOFILE": 32, "NPROC": 0})
    bounds.limit({"CORE": 0, "MEMLOCK": 0})
    held = bounds.close_the_door()
    landlock.confine((), ())
    program = calls.child_filter(os.uname().machine, os.getpid())
    if not held or program is None or not bpf.install(program):
        os._exit(70)


def _answer(request: dict[str, Any], sink: _Sink) -> dict[str, Any]:
    module = sys.modules["tool"] = types.ModuleType("tool")  # dataclasses looks its module up
    space = module.__dict__
    space.update(request["bindings"], params=json.loads(request["params"]))
    try:
        code = compile(request["source"], "tool.py", "exec")
        if request["check"]:
            return {"result": "null", "output": ""}
        exec(code, space)  # noqa: S102 - this is the place where it is meant to happen
        run = space.get("run")
        value = run(space["params"]) if run is not None else space.get("__return_value__")
    except BaseException as error:  # noqa: BLE001 - whatever the tool raises is its answer
        return _failure(error)
    try:
        return {"result": json.dumps(value), "output": sink.text()}
    except BaseException as error:  # noqa: BLE001 - the value is the tool's own
        return {"kind": "result", "message": _words(error)}


def _failure(error: BaseException) -> dict[str, Any]:
    kind = "memory" if isinstance(error, MemoryError) else "syntax" if isinstance(error, SyntaxError) else "code"
    line = error.lineno if isinstance(error, SyntaxError) else _line(error)
    return {"kind": kind, "message": _words(error), "line": line if isinstance(line, int) else None}


def _line(error: BaseException) -> int | None:
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "tool.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _words(error: BaseException) -> str:
    name = type(error).__name__
    try:
        return f"{name}: {str(error)[:4000]}" if str(error) else name
    except BaseException:  # noqa: BLE001 - the error is the tool's own
        return name


def _ask(channel: socket.socket, method: str, url: str, rest: tuple[dict[str, str], bytes]) -> Page:
    headers, body = rest
    _send(channel, {"http": [method, url, headers, base64.b64encode(body).decode()]})
    reply = _receive(channel)
    if "error" in reply:
        kinds = {"refused": PermissionError, "late": TimeoutError}
        raise kinds.get(reply["error"], OSError)(reply["message"])
    return reply["status"], reply["headers"], base64.b64decode(reply["body"]), reply["url"]


def _send(channel: socket.socket, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    channel.sendall(struct.pack(">I", len(data)) + data)


def _receive(channel: socket.socket) -> dict[str, Any]:
    (size,) = struct.unpack(">I", _exactly(channel, 4))
    return json.loads(_exactly(channel, size))


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = channel.recv(min(size - len(data), 1 << 16))
        if not chunk:
            os._exit(0)
        data += chunk
    return bytes(data)


class _Sink(io.TextIOBase):
    """What is printed, up to a bound; passing it ends the tool."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._parts: list[str] = []

    def write(self, text: str, /) -> int:
        """Keep it."""
        self._most -= len(text)
        if self._most < 0:
            raise MemoryError("too much output")
        self._parts.append(text)
        return len(text)

    def text(self) -> str:
        """All of it."""
        return "".join(self._parts)
