"""One CPython child for one run: started clean, confined by itself before it reads, killed with its group."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from amrita_plugin_memory.amos.errors import (
    SandboxError,
    SandboxLimit,
    SandboxTimeout,
    SandboxUnavailable,
    ToolCodeError,
    ToolResultError,
)
from amrita_plugin_memory.amos.sandbox.http import HttpRequest, HttpResponse
from amrita_plugin_memory.amos.sandbox.ports import Fetch
from amrita_plugin_memory.amos.sandbox.rules import MAX_OUTPUT, Finished, Job, SandboxOptions, clean_message

from . import wire

_SANDBOX: Final = Path(__file__).resolve().parent.parent
_START_SECONDS: Final = 15.0
_CHECK_SECONDS: Final = 5.0
_MACHINES: Final = ("x86_64", "aarch64")
_DENIALS: Final = """
import os, _socket
def refused(call):
    try:
        call()
    except OSError:
        return True
    return False
tries = [lambda: open('/etc/hostname'), lambda: os.stat('/'), lambda: _socket.socket(2, 1), os.fork,
    lambda: os.kill(os.getppid(), 0), lambda: os.execv('/bin/sh', ['sh'])]
if not all([refused(one) for one in tries]) or set(os.environ) - {'LC_ALL'}:
    __return_value__ = 'open'
else:
    raise ValueError('all refused')
"""
_CANARIES: Final = (  # code, and the error that it must end with
    (_DENIALS, ToolCodeError),
    ("while True: pass", SandboxTimeout),
    ("x = bytearray(1 << 30)", SandboxLimit),
)
log = logging.getLogger("amrita_memory.amos")


@dataclass(slots=True)
class ProcessEngine:
    """See `Engine`."""

    options: SandboxOptions
    _tested: bool = False
    _testing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.options.max_processes)

    async def ready(self) -> None:
        """See `Engine.ready`."""
        async with self._testing:
            if self._tested:
                return
            if sys.platform != "linux" or platform.machine() not in _MACHINES:
                raise SandboxUnavailable("process 引擎只能在 Linux 的 x86_64 或 aarch64 上使用，工具没有运行")
            await asyncio.gather(*(self._must_fail(code, expected) for code, expected in _CANARIES))
            self._tested = True

    async def run(self, job: Job, fetch: Fetch) -> Finished:
        """See `Engine.run`."""
        return await self._within_slot(job, fetch, check=False)

    async def check(self, source: str) -> None:
        """See `Engine.check`."""
        await self._within_slot(Job(source, "{}", _CHECK_SECONDS, 64, {}), _nobody, check=True)

    async def aclose(self) -> None:
        """See `Engine.aclose`; children end with their run."""
        self._tested = False

    async def _must_fail(self, code: str, expected: type[SandboxError]) -> None:
        job = Job(code, "{}", 0.3 if expected is SandboxTimeout else _CHECK_SECONDS, 64, {})
        try:
            await self._within_slot(job, _nobody, check=False)
        except SandboxError as error:
            if type(error) is expected:
                return
            log.warning("sandbox self-test ended with %s instead of %s", type(error).__name__, expected.__name__)
        raise SandboxUnavailable("process 引擎没有通过自检，工具没有运行，请查看日志")

    async def _within_slot(self, job: Job, fetch: Fetch, *, check: bool) -> Finished:
        try:
            async with asyncio.timeout(self.options.queue_timeout):
                await self._slots.acquire()
        except TimeoutError as error:
            raise SandboxUnavailable("沙箱正忙，请稍后再试") from error
        try:
            async with _child(job) as channel:
                return await self._talk(channel, job, fetch, check=check)
        finally:
            self._slots.release()

    async def _talk(self, channel: socket.socket, job: Job, fetch: Fetch, *, check: bool) -> Finished:
        request = {"source": job.source, "params": job.params, "bindings": job.bindings, "check": check}
        async with _deadline(_START_SECONDS, SandboxUnavailable("沙箱进程没有按时启动，工具没有运行")):
            if await wire.receive(channel) != {"ready": True}:
                raise SandboxUnavailable("沙箱进程没有被内核限制住，工具没有运行")
        async with _deadline(job.timeout, SandboxTimeout(f"工具运行超过 {job.timeout:g} 秒，已被停止")):
            await wire.send(channel, request)
            while (message := await wire.receive(channel)) is not None:
                if "http" not in message:
                    return _finished(message)
                await wire.serve(channel, message["http"], fetch)
        raise SandboxLimit("工具用尽了沙箱的资源，已被停止")


@contextlib.asynccontextmanager
async def _child(job: Job) -> AsyncGenerator[socket.socket]:
    ours, theirs = socket.socketpair()
    try:
        ours.setblocking(False)
        theirs.set_inheritable(True)
        process = await asyncio.create_subprocess_exec(
            *_command(theirs.fileno(), job),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={"LC_ALL": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise SandboxUnavailable("沙箱进程不能启动，工具没有运行") from error
    finally:
        theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())


@contextlib.asynccontextmanager
async def _deadline(seconds: float, late: SandboxError) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise late from None


def _command(fd: int, job: Job) -> list[str]:
    call = f"main({fd}, {int(job.memory_mb)}, {float(job.timeout)}, {MAX_OUTPUT})"
    text = f"import sys; sys.path.insert(0, {str(_SANDBOX)!r}); from inside.child import main; {call}"
    return [os.path.realpath(sys.executable), "-I", "-S", "-B", "-X", "utf8", "-c", text]


def _finished(message: dict[str, Any]) -> Finished:
    result, output = message.get("result"), message.get("output")
    if isinstance(result, str) and isinstance(output, str):
        return Finished(result, output[:MAX_OUTPUT])
    text = clean_message(str(message.get("message", "")))
    line = message.get("line")
    where = f"（第 {line} 行）" if isinstance(line, int) else ""
    kind = message.get("kind")
    if kind == "memory":
        raise SandboxLimit("工具超出了内存或输出的上限，请减少数据量")
    if kind == "result":
        raise ToolResultError("工具的返回值不能写成 JSON，请只返回字典、列表、文字、数字、布尔或 None")
    raise ToolCodeError(f"工具代码{'有语法错误' if kind == 'syntax' else '出错'}{where}：{text}")


async def _nobody(_: HttpRequest) -> HttpResponse:
    raise SandboxUnavailable("检查代码时没有网络")
