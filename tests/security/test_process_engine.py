"""The opt-in engine: a whole CPython, and still no way out."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loopback import answer, loopback

from amrita_plugin_memory.amos.errors import (
    SandboxLimit,
    SandboxTimeout,
    SandboxUnavailable,
    ToolCodeError,
    ToolResultError,
)
from amrita_plugin_memory.amos.sandbox import HttpBroker, HttpPolicy, Sandbox, SandboxOptions
from amrita_plugin_memory.amos.sandbox.process import ProcessEngine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
        reason="the engine is not for this machine",
    ),
]


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    box = Sandbox(SandboxOptions(engine="auto", allow_network=True, hosts=("*",), timeout=20), {})
    box.broker = HttpBroker(HttpPolicy(hosts=("*",), private=True))
    yield box
    asyncio.run(box.aclose())


async def test_code_that_the_default_engine_cannot_parse_runs_here(box: Sandbox) -> None:
    code = "class E(Exception): pass\ndef g():\n    yield 1\ndef run(params):\n    try:\n        raise E('x')\n    except E:\n        return [*g(), params['n']]"
    assert (await box.run(code, {"n": 2})).value == [1, 2]


async def test_modules_only_python_has_are_found_here(box: Sandbox) -> None:
    assert (await box.run("import zlib, heapq\n__return_value__ = heapq.nsmallest(1, [3, 1])")).value == [1]


async def test_code_the_default_engine_knows_stays_there(box: Sandbox) -> None:
    await box.run("__return_value__ = 1")
    with pytest.raises(ToolCodeError, match="gbk"):
        await box.run("__return_value__ = '中'.encode('gbk')")


async def test_it_fetches_through_the_broker_only(box: Sandbox) -> None:
    code = "import urllib.request, zlib\nwith urllib.request.urlopen(params['u']) as r:\n    __return_value__ = [r.status, r.read().decode(), r.headers['x-kind']]"
    async with loopback(lambda asked: answer(b"hi", x_kind="k")) as server:
        assert (await box.run(code, {"u": server.url})).value == [200, "hi", "k"]
        with pytest.raises(ToolCodeError, match="PermissionError"):
            await box.run(code, {"u": server.url}, allow_network=False)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import zlib\nraise ValueError('boom')", ToolCodeError),
        ("import zlib\n__return_value__ = {1}", ToolResultError),
        ("import zlib\nx = bytearray(1 << 30)", SandboxLimit),
        ("import zlib\nprint('x' * 100000)", SandboxLimit),
        ("import zlib, os\nos._exit(0)", SandboxLimit),
        ("import zlib\nraise SystemExit", ToolCodeError),
    ],
)
async def test_every_way_to_fail_has_its_error(box: Sandbox, code: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await box.run(code)


async def test_a_loop_ends_at_the_deadline_with_its_process(box: Sandbox) -> None:
    begin = time.monotonic()
    with pytest.raises(SandboxTimeout):
        await box.run("import zlib\nwhile True: pass", timeout=0.5)
    assert time.monotonic() - begin < 20
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if b"inside.child" in _read(p) and _is_ours(p.parent)]


def _is_ours(process: Path) -> bool:
    """Whether this process started it; another worker of the suite runs sandboxes of its own."""
    fields = _read(process / "stat").rpartition(b")")[2].split()
    return len(fields) > 1 and int(fields[1]) == os.getpid()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_on_another_machine_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(SandboxUnavailable, match="x86_64"):
        await ProcessEngine(SandboxOptions(engine="process")).ready()
