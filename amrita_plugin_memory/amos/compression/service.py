"""Compression of sessions: split, distil, merge, archive.

The model is asked outside every lock, so turns that arrive meanwhile are simply behind the part that goes. Before
anything is written, the file and the summary are looked at again under the lock; when either is no longer what the
model read, nothing is done. A model that fails, hangs, answers nothing or is not there defers the automatic
compression: the turns stay, and it is tried again a few turns later.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from amrita_plugin_memory.amos.errors import CompressionError, LLMUnavailableError
from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.memory import Sessions, StableText
from amrita_plugin_memory.amos.memory.sessions import compaction, turns
from amrita_plugin_memory.amos.memory.sessions.compaction import Plan
from amrita_plugin_memory.amos.types import CompressResult, SummarizeFn
from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, Locked
from amrita_plugin_memory.kernel.scope import Scope
from amrita_plugin_memory.kernel.text import well_formed

from .rules import DISTIL, CompressionRules, chunks, merge_instruction, next_try

log = logging.getLogger("amrita_memory.amos")

_CHANGED: Final = "会话在压缩期间被改动，请稍后再试"
_BUSY: Final = "另一个进程正在压缩这个会话"
_NOTHING: Final = "没有需要压缩的对话"


@dataclass(slots=True)
class Compression:
    """Compresses sessions of one root. ``summarize`` may be None: then only the automatic part is silent."""

    files: FileRoot
    sessions: Sessions
    stable: StableText
    summarize: SummarizeFn | None
    rules: CompressionRules
    clock: Clock
    _deferred: dict[PurePosixPath, tuple[int, int]] = field(default_factory=dict[PurePosixPath, tuple[int, int]])

    async def after_turn(self, scope: Scope, held: int) -> CompressResult | None:
        """Compress when the session holds too many turns; None when it does not, or it was deferred. Never raises."""
        if held <= self.rules.max_history_turns or self.summarize is None:
            return None
        session = layout.session_dir(scope)
        due, failures = self._deferred.get(session, (0, 0))
        if held < due:
            return None
        try:
            result = await self.run(scope, wait=0.0)
        except (AmritaMemoryError, OSError) as error:
            log.warning("compression deferred: %s", type(error).__name__, exc_info=error)
            self._deferred[session] = (next_try(held, failures + 1), failures + 1)
            return None
        self._deferred.pop(session, None)
        return result if result.compressed else None

    async def run(self, scope: Scope, *, force: bool = False, wait: float = 120.0) -> CompressResult:
        """Compress one session; ``force`` even when it holds few turns. ``wait`` seconds for another that is at it.

        Raises:
            LLMUnavailableError: there is something to do and no summariser, or it does not answer in time.
            CompressionError: the summariser failed or answered nothing.

        """
        try:
            async with self.files.lock(layout.session_dir(scope) / "compress", timeout=wait, keep_alive=True):
                result = await self._attempt(scope, force)
                return await self._attempt(scope, force) if result.reason == _CHANGED else result
        except Locked:
            held = await asyncio.to_thread(self.sessions.count, scope)
            return CompressResult(False, held, 0, held, reason=_BUSY)

    async def _attempt(self, scope: Scope, force: bool) -> CompressResult:
        plan = await asyncio.to_thread(self._plan, scope)
        total = len(plan.head) + plan.kept
        if not plan.head or (not force and total <= self.rules.max_history_turns):
            return CompressResult(False, total, 0, total, reason=_NOTHING)
        text = await self._summary(plan)
        limit = self.rules.summary_max_chars
        result = CompressResult(
            True, total, len(plan.head), plan.kept, new_summary=text[:limit], summary_truncated=len(text) > limit
        )
        archives = await asyncio.to_thread(self._commit, scope, plan, text[:limit])
        if archives is None:
            return CompressResult(False, total, 0, total, reason=_CHANGED)
        return replace(result, archive_path=archives[0])

    def _plan(self, scope: Scope) -> Plan:
        self.sessions.settle(scope)
        data = self.files.read(layout.messages(scope)) or b""
        return compaction.plan(data, keep=self.rules.kept, old_summary=self.stable.summary(scope))

    def _commit(self, scope: Scope, plan: Plan, summary: str) -> list[str] | None:
        """The archive files that grew; None when session or summary are no longer what the model read."""
        with self.files.lock(layout.messages(scope), keep_alive=True):
            compaction.recover(self.files, scope)
            data = self.files.read(layout.messages(scope)) or b""
            same = compaction.begins_as_planned(data, plan.size, plan.digest)
            if not same or self.stable.summary(scope) != plan.old_summary:
                return None
            return compaction.commit(
                self.files, scope, plan, data, summary=summary, zone=self.rules.zone, now=self.clock.now()
            )

    async def _summary(self, plan: Plan) -> str:
        said = (turns.dialogue([turn]) for turn in plan.head)
        distilled = [await self._ask(text, DISTIL) for text in chunks(said)]
        if len(distilled) == 1 and not plan.old_summary.strip():
            return distilled[0]
        merge = merge_instruction(self.rules.summary_max_chars)
        return await self._ask("\n\n".join([plan.old_summary.strip(), "\n".join(distilled)]).strip(), merge)

    async def _ask(self, text: str, instruction: str) -> str:
        if self.summarize is None:
            raise LLMUnavailableError("没有提供 summarize_fn，无法压缩会话，请在 AMOS.create 里提供")
        try:
            answer = await asyncio.wait_for(_called(self.summarize, text, instruction), self.rules.timeout)
        except TimeoutError as error:
            raise LLMUnavailableError("生成摘要超时，对话已保留，稍后会再试") from error
        except AmritaMemoryError:
            raise
        except Exception as error:
            raise CompressionError("生成摘要失败，对话已保留，稍后会再试") from error
        if not answer.strip():
            raise CompressionError("摘要为空，对话已保留，稍后会再试")
        return well_formed(answer).strip()


async def _called(summarize: SummarizeFn, text: str, instruction: str) -> str:
    if inspect.iscoroutinefunction(summarize):
        return str(await summarize(text, instruction))
    answer = await asyncio.to_thread(summarize, text, instruction)
    return str(await answer) if inspect.isawaitable(answer) else str(answer)
