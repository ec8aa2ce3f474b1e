"""The pool of Monty workers: at most ``max_processes`` runs at once, each with a deadline that is kept by killing."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from amrita_plugin_memory.amos.errors import (
    SandboxError,
    SandboxLimit,
    SandboxTimeout,
    SandboxUnavailable,
    ToolCodeError,
)
from amrita_plugin_memory.amos.sandbox.ports import Fetch
from amrita_plugin_memory.amos.sandbox.rules import Finished, Job, SandboxOptions

from . import prelude, worker
from .imports import rewrite
from .run import MontyRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_monty import Monty

T = TypeVar("T")
_SPAWN_SECONDS: Final = 20.0  # a worker that has not started by then will not
_GRACE: Final = 0.5  # seconds for the interpreter to say itself that time is over
_CHECKOUTS: Final = 200
_CHECK_SECONDS: Final = 5.0
_CANARIES: Final = (  # code, and the error that it must end with
    ("open('/etc/hostname').read()", ToolCodeError),
    ("import os\n__return_value__ = os.environ['PATH']", ToolCodeError),
    ("import socket", ToolCodeError),
    ("while True: pass", SandboxTimeout),
    ("x = [0] * 1000\nwhile True: x = x + x", SandboxLimit),
)
log = logging.getLogger("amrita_memory.amos")


@dataclass(slots=True)
class MontyEngine:
    """See `Engine`."""

    options: SandboxOptions
    _pool: Monty | None = None
    _worker: worker.Worker | None = None
    _preludes: dict[str, str] = field(default_factory=dict[str, str])
    _tested: bool = False
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _threads: ThreadPoolExecutor | None = None
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.options.max_processes)

    async def ready(self) -> None:
        """See `Engine.ready`."""
        if self._tested:
            return
        async with self._opening:
            if self._tested:
                return
            if self._pool is None:
                await asyncio.to_thread(self._open)
            for code, expected in _CANARIES:
                await self._must_fail(code, expected)
            self._tested = True

    async def run(self, job: Job, fetch: Fetch) -> Finished:
        """See `Engine.run`."""
        return await self._supervised(job, fetch, MontyRun.go)

    async def check(self, source: str) -> None:
        """See `Engine.check`."""

        async def nobody(_: object) -> None:
            return None

        job = Job(source, "{}", _CHECK_SECONDS, 64, {})
        await self._supervised(job, nobody, MontyRun.check)  # pyright: ignore[reportArgumentType]

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        async with self._opening:
            pool, self._pool, self._tested = self._pool, None, False
            if pool is not None:
                await asyncio.to_thread(pool.__exit__, None, None, None)
            if self._threads is not None:
                self._threads.shutdown(wait=False)
                self._threads = None
            if self._worker is not None:
                self._worker.close()
                self._worker = None

    def _open(self) -> None:
        self._worker = worker.prepare(required=self.options.require_os_layer)
        try:
            from pydantic_monty import Monty

            pool = Monty(
                binary_path=self._worker.path,
                min_processes=0,
                max_processes=self.options.max_processes,
                checkout_timeout=self.options.queue_timeout,
                max_checkouts_per_worker=_CHECKOUTS,
            )
            pool.__enter__()
        except (ImportError, OSError) as error:
            raise SandboxUnavailable("沙箱解释器不能启动，请检查 pydantic-monty 的安装，工具没有运行") from error
        self._pool, self._preludes = pool, prelude.load()
        self._threads = ThreadPoolExecutor(self.options.max_processes, "amos-sandbox")

    async def _must_fail(self, code: str, expected: type[SandboxError]) -> None:
        async def nobody(_: object) -> None:
            return None

        job = Job(code, "{}", 0.3 if expected is SandboxTimeout else _CHECK_SECONDS, 32, {})
        try:
            await self._supervised(job, nobody, MontyRun.go)  # pyright: ignore[reportArgumentType]
        except SandboxError as error:
            if type(error) is expected:
                return
            log.warning("sandbox self-test ended with %s instead of %s", type(error).__name__, expected.__name__)
        raise SandboxUnavailable("沙箱没有通过自检，工具没有运行，请查看日志")

    async def _supervised(self, job: Job, fetch: Fetch, what: Callable[[MontyRun], T]) -> T:
        if self._pool is None or self._threads is None:
            raise SandboxUnavailable("沙箱还没有启动，工具没有运行")
        await self._slot()
        try:
            loop = asyncio.get_running_loop()
            run = MontyRun(self._pool, job, rewrite(job.source), fetch, loop, self._is_confined, self._preludes)
            work = asyncio.ensure_future(loop.run_in_executor(self._threads, what, run))
            work.add_done_callback(_seen)
            try:
                await self._until_done(run, work)
            finally:
                if not work.done():
                    run.kill()
                    await asyncio.wait({work}, timeout=_SPAWN_SECONDS)
        finally:
            self._slots.release()
        return work.result()

    async def _until_done(self, run: MontyRun, work: asyncio.Future[T]) -> None:
        starting = asyncio.ensure_future(run.started.wait())
        try:
            await asyncio.wait({work, starting}, timeout=_SPAWN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            starting.cancel()
        await asyncio.wait({work}, timeout=run.job.timeout + _GRACE)

    @property
    def _is_confined(self) -> bool:
        return self._worker is not None and self._worker.confined

    async def _slot(self) -> None:
        try:
            async with asyncio.timeout(self.options.queue_timeout):
                await self._slots.acquire()
        except TimeoutError as error:
            raise SandboxUnavailable("沙箱正忙，请稍后再试") from error


def _seen(work: asyncio.Future[object]) -> None:
    if not work.cancelled():
        work.exception()  # a run that nobody waits for any more is not worth a warning
