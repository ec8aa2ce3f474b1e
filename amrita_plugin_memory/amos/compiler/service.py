"""The compiler: ask, parse without running, hand errors back, store what parses and mark what does not."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, cast

from amrita_plugin_memory.amos.assets import Asset, AssetDraft, AssetStore
from amrita_plugin_memory.amos.errors import LLMUnavailableError, SandboxError, SandboxUnavailable
from amrita_plugin_memory.kernel.errors import NotFound, shorten
from amrita_plugin_memory.kernel.text import clean

from . import rules
from .rules import Generated

CompileFn: TypeAlias = Callable[[list[dict[str, str]]], "Awaitable[Any] | Any"]
"""``(messages) -> answer``: asks a model; a plain function runs in a thread."""

RETRIES: Final = 2
MAX_DEFINITION: Final = 2000  # characters of the workflow that the tool's definition repeats


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """``overwrite`` makes a new version of a tool that is there; the rest goes into its metadata."""

    overwrite: bool = False
    description: str | None = None
    version: str = "v1"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A tool that was stored; ``problem`` says why it is only a draft."""

    asset: Asset
    problem: str = ""


class Checker(Protocol):
    """The sandbox, as far as compiling needs it."""

    async def check(self, source: str) -> None:
        """Parse without running."""
        ...


@dataclass(frozen=True, slots=True)
class WorkflowCompiler:
    """Compiles workflows of one root; ``timeout`` are the seconds one answer of the model may take."""

    store: AssetStore
    sandbox: Checker
    compile_fn: CompileFn | None = None
    timeout: float = 120.0

    async def compile(
        self, asset: Asset, workflow: tuple[str, str | None], *, author: str, now: str, options: CompileOptions
    ) -> Compiled:
        """Make a tool of a workflow and store it, as a draft while its code does not parse.

        Args:
            asset: where the tool goes.
            workflow: name and text.
            author: who asked.
            now: the moment, as the files write it.
            options: see there.

        Raises:
            NotFound: the workflow has no text.
            AssetExistsError: the tool is there and ``overwrite`` is not given.
            LLMUnavailableError: the model does not answer.

        """
        name, text = workflow
        if text is None or not text.strip():
            raise NotFound(f"没有名为 {shorten(name)} 的工作流，请先用 add_workflow 建立")
        made, problem = await self._made(name, text)
        schema = made.schema or {"type": "object", "properties": {}, "required": []}
        metadata: dict[str, Any] = {
            "status": "draft" if problem else "active",
            "description": options.description or made.description or rules.title(text, name),
            "compiledFrom": name,
            "compileError": problem or None,
            "version": options.version,
            "schema": schema,
        }
        metadata = {key: value for key, value in metadata.items() if value is not None}
        draft = AssetDraft(_definition(metadata["description"], name, text), {"code.py": made.code}, metadata, schema)
        await asyncio.to_thread(self.store.create, asset, draft, author=author, now=now, replace=options.overwrite)
        return Compiled(asset, problem)

    async def verdict(self, code: str) -> str:
        """Why code does not parse in the engine; "" when it does."""
        try:
            await self.sandbox.check(code)
        except SandboxUnavailable:
            raise
        except SandboxError as error:
            return str(error)
        return ""

    async def _made(self, name: str, text: str) -> tuple[Generated, str]:
        if self.compile_fn is None:
            made = rules.template(name, text)
            return made, await self._problem(made.code)
        messages = rules.request(name, text)
        made, problem = Generated("# 模型没有给出代码\n"), "模型的回答里没有代码"
        for _ in range(RETRIES + 1):
            answer = await self._ask(self.compile_fn, messages)
            found = rules.read_answer(answer)
            made = found or made
            problem = await self._problem(found.code) if found else "回答里没有代码"
            if not problem:
                break
            messages += rules.complaint(answer if isinstance(answer, str) else repr(answer), problem)
        return made, problem

    async def _problem(self, code: str) -> str:
        try:
            return await self.verdict(code)
        except SandboxUnavailable as error:
            return f"没能检查代码：{error}"

    async def _ask(self, ask: CompileFn, messages: Sequence[dict[str, str]]) -> Any:
        given = [dict(message) for message in messages]
        try:
            async with asyncio.timeout(self.timeout):
                answer = ask(given) if inspect.iscoroutinefunction(ask) else await asyncio.to_thread(ask, given)
                return await cast("Awaitable[Any]", answer) if inspect.isawaitable(answer) else answer
        except TimeoutError as error:
            raise LLMUnavailableError(f"模型在 {self.timeout:g} 秒内没有给出代码，请稍后再试") from error


def _definition(description: str, name: str, text: str) -> str:
    source = "\n".join(f"> {line}" for line in clean(text)[:MAX_DEFINITION].splitlines())
    return f"# {description}\n\n由工作流“{name}”编译而成。\n\n{source}\n"
