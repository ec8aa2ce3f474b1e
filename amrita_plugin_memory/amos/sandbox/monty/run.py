"""One run inside one Monty session, in a thread: feed, answer what the code asks of the host, be killed from outside.

The synchronous side of pydantic-monty is used on purpose: a thread that waits for a worker ends at once when the worker
is killed, and nothing of the interpreter's own event loop is left when the program ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from amrita_plugin_memory.amos.errors import (
    HttpFailed,
    HttpRefused,
    SandboxLimit,
    SandboxTimeout,
    SandboxUnavailable,
    ToolCodeError,
    ToolResultError,
)
from amrita_plugin_memory.amos.sandbox.http import HttpRequest, HttpResponse
from amrita_plugin_memory.amos.sandbox.ports import Fetch
from amrita_plugin_memory.amos.sandbox.rules import MAX_OUTPUT, MAX_RESULT, Finished, Job, clean_message

from . import worker
from .imports import Rewritten
from .prelude import HTTP_CALL

if TYPE_CHECKING:
    from pydantic_monty import CollectString, FunctionSnapshot, Monty, MontyRuntimeError, MontySession, MontySyntaxError

_CALL: Final = """
try:
    _amos_run = run
except NameError:
    try:
        _amos_value = __return_value__
    except NameError:
        _amos_value = None
else:
    _amos_value = _amos_run(params)
None
"""
_DUMP: Final = f"""
import json as _amos_json
_amos_text = _amos_json.dumps(_amos_value)
if len(_amos_text) > {MAX_RESULT}:
    raise ValueError("too big")
_amos_text
"""
_CHECKED: Final = "_amos_checked_4f1d"
_TIME_OVER: Final = "time limit exceeded"


@dataclass(slots=True)
class MontyRun:
    """One job in one session; `go` and `check` block, `kill` may be called from anywhere at any time."""

    pool: Monty
    job: Job
    code: Rewritten
    fetch: Fetch
    loop: asyncio.AbstractEventLoop
    confined: bool
    preludes: Mapping[str, str]
    started: asyncio.Event = field(default_factory=asyncio.Event)
    pid: int | None = None
    deadline: float = 0.0
    _killed: bool = False
    _shift: int = 0  # lines of ours before the code
    _waiting: Future[HttpResponse] | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def go(self) -> Finished:
        """Run the job. Raises what `Engine.run` says."""
        with self._session() as session:
            printed = _sink()
            for name in self.code.modules:
                self._feed(session, self.preludes[name], printed)
            values = {"params": json.loads(self.job.params), **self.job.bindings}
            self._feed(session, f"{self.code.source}\nNone\n", printed, values)
            self._feed(session, _CALL, printed)
            try:
                text = self._feed(session, _DUMP, printed)
            except ToolCodeError as error:
                raise ToolResultError(
                    "工具的返回值不能写成 JSON，请只返回字典、列表、文字、数字、布尔或 None"
                ) from error
            return Finished(cast("str", text), printed.output)

    def check(self) -> None:
        """Parse the code: a first line that raises keeps every other from running."""
        self._shift = 1
        with self._session() as session:
            try:
                self._feed(session, f"raise RuntimeError('{_CHECKED}')\n{self.code.source}\nNone\n", _sink())
            except ToolCodeError as error:
                if _CHECKED not in str(error):
                    raise

    def kill(self) -> None:
        """End the worker; the thread in `go` comes back at once."""
        with self._guard:
            self._killed = True
            if self._waiting is not None:
                self._waiting.cancel()
            if self.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    @contextlib.contextmanager
    def _session(self) -> Generator[MontySession]:
        import pydantic_monty as monty

        limits = monty.ResourceLimits(
            max_feed_duration_secs=self.job.timeout, max_memory=self.job.memory_mb << 20, max_recursion_depth=400
        )
        try:
            with self.pool.checkout(limits=limits, script_name="tool.py") as session:
                self._enter(session)
                try:
                    yield session
                finally:
                    self._leave()
        except monty.MontyCrashedError as error:
            raise self._crash(error.timed_out) from error
        except monty.MontyError as error:
            raise ToolCodeError("工具代码没有跑完，请检查") from error
        except TimeoutError as error:
            raise SandboxUnavailable("沙箱正忙，请稍后再试") from error
        except OSError as error:
            raise SandboxUnavailable("沙箱进程不能启动，工具没有运行，请检查 pydantic-monty 的安装") from error

    def _enter(self, session: MontySession) -> None:
        with self._guard:
            if self._killed:
                raise SandboxTimeout("工具在开始前被取消")
            self.pid = session.worker_pid
        session.feed_run("None", print_callback=_sink())  # an answer means that the launcher has done its work
        if self.confined and not worker.holds(self.pid):
            raise SandboxUnavailable("沙箱进程没有被内核限制住，工具没有运行")
        self.deadline = time.monotonic() + self.job.timeout
        self.loop.call_soon_threadsafe(self.started.set)

    def _leave(self) -> None:
        with self._guard:
            self.pid = None  # the worker may serve somebody else from here on

    def _crash(self, timed_out: bool) -> Exception:
        if timed_out or self._killed:
            return SandboxTimeout(f"工具运行超过 {self.job.timeout:g} 秒，已被停止")
        return SandboxLimit("工具用尽了沙箱的资源，已被停止")

    def _feed(
        self, session: MontySession, code: str, printed: CollectString, inputs: Mapping[str, Any] | None = None
    ) -> Any:
        import pydantic_monty as monty

        try:
            step = session.feed_start(code, inputs=dict(inputs or {}), print_callback=printed)
            while not isinstance(step, monty.MontyComplete):
                if isinstance(step, monty.FunctionSnapshot):
                    step = step.resume_not_handled() if _is_unserved(step) else step.resume(self._answer(step))
                elif isinstance(step, monty.NameLookupSnapshot):
                    step = step.resume()
                else:
                    raise ToolCodeError("工具代码在等待一个不存在的异步结果，请检查 await")
            return step.output
        except monty.MontySyntaxError as error:
            text = clean_message(error.display("msg"))
            raise ToolCodeError(f"工具代码有语法错误{self._where(error)}：{text}") from error
        except monty.MontyRuntimeError as error:
            raise self._failure(error) from error

    def _failure(self, error: MontyRuntimeError) -> Exception:
        text = clean_message(error.display("type-msg"))
        kind = text.partition(":")[0]
        if kind == "TimeoutError" and _TIME_OVER in text:
            return SandboxTimeout(f"工具运行超过 {self.job.timeout:g} 秒，已被停止")
        if kind == "MemoryError":
            return SandboxLimit("工具超出了内存或输出的上限，请减少数据量")
        if kind == "NotImplementedError" and "syntax parser" in text:
            return UnsupportedCode(f"沙箱不支持这种写法{self._where(error)}：{text.partition(': ')[2]}，请换一种写法")
        return ToolCodeError(f"工具代码出错{self._where(error)}：{text}")

    def _where(self, error: MontySyntaxError | MontyRuntimeError) -> str:
        frames = [
            frame for frame in error.traceback() if not (frame.function_name or "").startswith(("_amos", "_Amos"))
        ]
        lines = [frame.line - self._shift for frame in frames]
        return f"（第 {lines[-1]} 行）" if lines else ""

    def _answer(self, step: FunctionSnapshot) -> Any:
        if step.function_name == "system.sleep":
            return self._sleep(step.args)
        if step.function_name == HTTP_CALL:
            return self._http(step.args)
        return {"exc_type": "NameError", "message": f"name '{step.function_name}' is not defined"}

    def _sleep(self, args: tuple[Any, ...]) -> Any:
        seconds = args[0] if args and isinstance(args[0], int | float) else 0
        left = self.deadline - time.monotonic()
        end = time.monotonic() + max(min(seconds, left), 0)
        while not self._killed and (rest := end - time.monotonic()) > 0:
            time.sleep(min(rest, 0.05))
        if seconds >= left or self._killed:
            return {"exc_type": "TimeoutError", "message": _TIME_OVER}
        return {"return_value": None}

    def _http(self, args: tuple[Any, ...]) -> Any:
        try:
            request = _request(args)
        except TypeError as error:
            return {"exc_type": "TypeError", "message": str(error)}
        with self._guard:
            if self._killed:
                return {"exc_type": "TimeoutError", "message": _TIME_OVER}
            waiting = self._waiting = asyncio.run_coroutine_threadsafe(_fetched(self.fetch, request), self.loop)
        try:
            answer = waiting.result(timeout=max(self.deadline - time.monotonic(), 0.0) + 0.5)
        except HttpRefused as error:
            return {"exc_type": "PermissionError", "message": str(error)}
        except HttpFailed as error:
            return {"exc_type": "OSError", "message": str(error)}
        except (TimeoutError, asyncio.CancelledError):
            waiting.cancel()
            return {"exc_type": "TimeoutError", "message": _TIME_OVER}
        return {"return_value": [answer.status, answer.headers, answer.body, answer.url]}


class UnsupportedCode(ToolCodeError):
    """Code this interpreter refused to parse, before any of it ran: another engine may take it."""


def _is_unserved(step: FunctionSnapshot) -> bool:
    return step.is_os_function and step.function_name != "system.sleep"


def _sink() -> CollectString:
    import pydantic_monty as monty

    return monty.CollectString(max_bytes=MAX_OUTPUT)


async def _fetched(fetch: Fetch, request: HttpRequest) -> HttpResponse:
    return await fetch(request)


def _request(args: tuple[Any, ...]) -> HttpRequest:
    match args:
        case (str(method), str(url), given, bytes(body)) if _is_headers(given):
            return HttpRequest(url, method, given, body)
        case _:
            pass
    raise TypeError("a request needs text for method, URL and headers, and bytes for the body")


def _is_headers(value: object) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(
        isinstance(text, str) for pair in cast("dict[Any, Any]", value).items() for text in pair
    )
