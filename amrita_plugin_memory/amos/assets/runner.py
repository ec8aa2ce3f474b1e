"""One run of one tool, with every lock in front of it."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, Protocol, TypeAlias

from amrita_plugin_memory.amos.errors import ACLDeniedError, AssetNotFoundError, InvalidAssetError, SandboxTimeout
from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.amos.ground.layout import PRIVATE
from amrita_plugin_memory.amos.sandbox import EngineName, Sandbox
from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.kernel.scope import Scope

from . import rules
from .budget import RunBudget
from .store import Asset, AssetStore

Executor: TypeAlias = Callable[[str, str, Any], Awaitable[Any]]
"""``(code, language, input) -> value``: how a program runs code itself instead of our sandbox."""

_APPROVALS: Final = PRIVATE / "approvals.json"
_ENTRIES: Final = (("code.py", "python"), ("code.js", "javascript"))


class Guard(Protocol):
    """The access list, as far as a run needs it."""

    async def assert_permission(self, resource: str, action: Any, actor: str | None = None) -> None:
        """Raise ACLDeniedError unless the actor may."""
        ...


@dataclass(frozen=True, slots=True)
class AssetExecutionResult:
    """What a run gave; ``error`` is one sentence, ``error_type`` the name of the error."""

    ok: bool
    duration_ms: float
    output: Any = None
    error: str | None = None
    error_type: str | None = None
    printed: str = ""


@dataclass(slots=True)
class ToolRunner:
    """Runs tools of one root.

    ``env_vars`` are what the root's manifest allows; ``require_approval`` lets only code run that somebody who may has
    looked at (`approve`), and changed code is no longer that code.
    """

    store: AssetStore
    sandbox: Sandbox
    guard: Guard
    env_vars: tuple[str, ...] = ()
    require_approval: bool = False
    budget: RunBudget = field(default_factory=RunBudget)
    executor: Executor | None = None

    async def run(
        self, scope: Scope, name: str, params: Mapping[str, Any] | None = None, *, timeout_ms: float | None = None
    ) -> Any:
        """Run a tool and give back its value.

        Raises:
            AssetNotFoundError: no such tool.
            ACLDeniedError: the actor may not execute it, or its code awaits approval.
            InvalidAssetError: it is a draft, deprecated, or has no code.
            LimitReached: too many runs.
            SandboxError: what the sandbox says.

        """
        return (await self._run(scope, name, params, timeout_ms))[0]

    async def attempt(
        self,
        scope: Scope,
        asset_type: str,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout_ms: float | None = None,
    ) -> AssetExecutionResult:
        """Run a tool; every refusal and failure is part of the result."""
        begin = time.perf_counter()
        try:
            if rules.check_type(asset_type) != "tool":
                raise InvalidAssetError("只有工具可以运行，页面和应用不能")
            value, printed = await self._run(scope, name, params, timeout_ms)
        except AmritaMemoryError as error:
            return AssetExecutionResult(False, _since(begin), None, str(error), type(error).__name__)
        return AssetExecutionResult(True, _since(begin), value, printed=printed)

    async def approve(self, scope: Scope, name: str) -> str:
        """Let a tool's code as it is now run where approval is required; the hash of the code."""
        asset = await asyncio.to_thread(self.store.find, scope, "tool", name)
        code, _ = await asyncio.to_thread(self._code, asset)
        await asyncio.to_thread(self._remember, asset.folder, digest := _digest(code))
        return digest

    async def _run(
        self, scope: Scope, name: str, params: Mapping[str, Any] | None, timeout_ms: float | None
    ) -> tuple[Any, str]:
        asset = await asyncio.to_thread(self.store.find, scope, "tool", name)
        await self.guard.assert_permission(str(asset.folder), "execute", scope.actor)
        metadata = await asyncio.to_thread(self.store.read_metadata, asset)
        _check_status(name, rules.status(metadata))
        code, language = await asyncio.to_thread(self._code, asset)
        if self.require_approval and await asyncio.to_thread(self._approved, asset.folder) != _digest(code):
            raise ACLDeniedError(f"工具 {name} 的代码还没有人确认，请让管理员用 approve_tool 确认")
        self.budget.spend(scope.actor)
        seconds = None if timeout_ms is None else timeout_ms / 1000
        if self.executor is not None:
            return await self._by_program(self.executor, code, language, params=params, seconds=seconds), ""
        if language != "python":
            raise InvalidAssetError(f"沙箱只能运行 Python，工具 {name} 是 {language}")
        engine: EngineName | None = "process" if metadata.get("engine") == "process" else None
        ran = await self.sandbox.run(code, params, timeout=seconds, declared=self.env_vars, engine=engine)
        return ran.value, ran.output

    async def _by_program(
        self, executor: Executor, code: str, language: str, *, params: Mapping[str, Any] | None, seconds: float | None
    ) -> Any:
        limit = self.sandbox.options.timeout if seconds is None else seconds
        try:
            async with asyncio.timeout(limit):
                value = executor(code, language, dict(params or {}))
                return await value if inspect.isawaitable(value) else value
        except TimeoutError as error:
            raise SandboxTimeout(f"工具运行超过 {limit:g} 秒，已被停止") from error

    def _code(self, asset: Asset) -> tuple[str, str]:
        for name, language in _ENTRIES:
            try:
                return self.store.read_file(asset, name), language
            except AssetNotFoundError:
                continue
        raise InvalidAssetError(f"工具 {asset.name} 没有 {rules.CODE}，不能运行")

    def _approved(self, folder: PurePosixPath) -> str | None:
        found = (self._files.read_object(_APPROVALS) or {}).get(str(folder))
        return found if isinstance(found, str) else None

    def _remember(self, folder: PurePosixPath, digest: str) -> None:
        with self._files.lock(_APPROVALS):
            known = self._files.read_object(_APPROVALS) or {}
            self._files.write_json(_APPROVALS, {**known, str(folder): digest})

    @property
    def _files(self) -> FileRoot:
        return self.store.files


def _check_status(name: str, status: str) -> None:
    if status == "deprecated":
        raise InvalidAssetError(f"工具 {name} 已停用，不能运行")
    if status != "active":
        raise InvalidAssetError(f"工具 {name} 还是草稿，修正代码后才能运行")


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


def _since(begin: float) -> float:
    return round((time.perf_counter() - begin) * 1000, 3)
