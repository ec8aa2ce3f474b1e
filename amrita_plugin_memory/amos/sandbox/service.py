"""Verbs of the sandbox: run code, check code. One `Sandbox` belongs to one root and is closed with it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amrita_plugin_memory.amos.errors import HttpRefused, SandboxError, SandboxUnavailable
from amrita_plugin_memory.kernel.errors import InvalidInput

from . import javascript, placeholders
from .http import HttpBroker, HttpPolicy, HttpRequest, HttpResponse
from .monty import MontyEngine, UnsupportedCode, unknown_modules
from .ports import Engine, Fetch
from .process import ProcessEngine
from .rules import (
    MAX_TIMEOUT,
    EngineName,
    Finished,
    Job,
    SandboxOptions,
    gate_params,
    gate_source,
    map_text,
    read_result,
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run gave: a JSON value, and what the code printed."""

    value: Any
    output: str


@dataclass(slots=True)
class Sandbox:
    """Runs tool code; `environment` is where placeholders are looked up, the process's own unless given."""

    options: SandboxOptions = field(default_factory=SandboxOptions)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _engines: dict[str, Engine] = field(default_factory=dict[str, Engine])
    broker: HttpBroker = field(init=False)

    def __post_init__(self) -> None:
        self.broker = HttpBroker(HttpPolicy(hosts=self.options.hosts, ports=self.options.ports))

    async def run(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - kept by killing the worker
        allow_network: bool | None = None,
        declared: Sequence[str] = (),
        engine: EngineName | None = None,
    ) -> Ran:
        """Run tool code: ``run(params)`` when it defines it, else the top-level ``__return_value__``.

        Args:
            source: Python.
            params: what the code finds under this name; a copy.
            timeout: seconds, the options' own unless given.
            allow_network: False closes the network for this run; True opens nothing that the options keep closed.
            declared: names the manifest's ``env_vars`` allow; empty means that it says nothing.
            engine: "process" for code that was bound to it; only where the options let that engine run at all.

        Raises:
            SandboxUnavailable: no engine, or not the one asked for; nothing was run.
            SandboxError: everything else that can go wrong with code, see its subclasses.

        """
        seconds = self._seconds(timeout)
        text = gate_params({} if params is None else dict(params))
        bound = placeholders.bind(gate_source(source), self.environment, self.options.env_whitelist, declared)
        job = Job(bound.source, text, seconds, self.options.memory_mb, bound.bindings)
        fetch = self._fetch if self.options.allow_network and allow_network is not False else _closed
        try:
            finished = await self._run(job, fetch, engine)
            value = read_result(finished.result)
        except SandboxError as error:
            if not bound.secrets:
                raise
            raise _scrubbed(error, bound.secrets) from None  # the cause may hold what was scrubbed
        hide = _hider(bound.secrets)
        return Ran(map_text(value, hide) if bound.secrets else value, hide(finished.output))

    async def check(self, source: str, *, language: str = "python") -> None:
        """Return when the code can be parsed by the engine that would run it; none of it is run.

        JavaScript is parsed too, although no engine runs it.

        Raises:
            ToolCodeError: with line and reason.
            SandboxUnavailable: no engine.

        """
        names = placeholders.names_in(gate_source(source))
        if language == "javascript":
            await asyncio.to_thread(javascript.check, source)
            return
        bound = placeholders.bind(source, dict.fromkeys(names, "value1"), ("*",)) if names else None
        plain = source if bound is None else bound.source
        engine, _ = self._choose(plain, None)
        await (await self._ready(engine)).check(plain)

    async def aclose(self) -> None:
        """Stop every worker."""
        engines, self._engines = list(self._engines.values()), {}
        await asyncio.gather(*(engine.aclose() for engine in engines))

    def _seconds(self, timeout: float | None) -> float:
        seconds = self.options.timeout if timeout is None else timeout
        if not 0 < seconds <= MAX_TIMEOUT:
            raise InvalidInput(f"时限必须大于 0 且不超过 {MAX_TIMEOUT:g} 秒")
        return seconds

    async def _run(self, job: Job, fetch: Fetch, pinned: EngineName | None) -> Finished:
        name, fallback = self._choose(job.source, pinned)
        engine = await self._ready(name)
        if fallback is None:
            return await engine.run(job, fetch)
        try:
            await engine.check(job.source)  # on its own, so that nothing has run when the other engine is asked
        except UnsupportedCode as error:
            other = await self._ready_or(fallback, error)
            return await other.run(job, fetch)
        return await engine.run(job, fetch)

    def _choose(self, source: str, pinned: EngineName | None) -> tuple[str, str | None]:
        """The engine to use, and the one for code it cannot parse."""
        chosen = self.options.engine
        if chosen == "off":
            raise SandboxUnavailable("沙箱已关闭（sandbox.engine 是 off），工具没有运行；要运行请改为 monty")
        if pinned == "process" and chosen == "monty":
            raise SandboxUnavailable("这个工具需要 process 引擎，请让管理员启用；工具没有运行")
        if chosen != "auto" or pinned == "process":
            return ("process" if chosen == "process" or pinned == "process" else "monty"), None
        return ("process", None) if unknown_modules(source) else ("monty", "process")

    async def _ready(self, name: str) -> Engine:
        engine = self._engines.get(name)
        if engine is None:
            engine = self._engines[name] = self._build(name)
        await engine.ready()
        return engine

    async def _ready_or(self, name: str, error: Exception) -> Engine:
        try:
            return await self._ready(name)
        except SandboxUnavailable:
            raise error from None  # what the first engine said is the better hint

    def _build(self, name: str) -> Engine:
        return MontyEngine(self.options) if name == "monty" else ProcessEngine(self.options)

    async def _fetch(self, request: HttpRequest) -> HttpResponse:
        return await self.broker.fetch(request)


async def _closed(_: HttpRequest) -> HttpResponse:
    raise HttpRefused("沙箱没有开放网络，请让管理员打开 allow_network 并填写 allow_hosts")


def _hider(secrets: Sequence[str]) -> Callable[[str], str]:
    return lambda text: placeholders.scrub(text, secrets)


def _scrubbed(error: SandboxError, secrets: Sequence[str]) -> SandboxError:
    return type(error)(placeholders.scrub(str(error), secrets))
