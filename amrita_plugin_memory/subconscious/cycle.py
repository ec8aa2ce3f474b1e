"""One run for one target: prompt, ReAct loop with the isolated tools, journal, and what it leaves in the state."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.kernel.text import clean, cut, one_line
from amrita_plugin_memory.kernel.toolrun import run as run_tool
from amrita_plugin_memory.kernel.toolspec import ToolSpec

from .bench import Bench
from .journal import Journal, RunRecord, Step
from .ports import Limits, Messenger, Outcome, Reasoner, ReasoningFailed
from .prompts import Prompts
from .rules.state import MAX_PENDING, CycleState
from .toolbox import TOOLBOX

_log = logging.getLogger("amrita_memory.subconscious")
_OPENING: Final = (
    "第 {number} 轮整理。请先调用 subconscious_get_context，按规则整理，完成后调用 subconscious_iter_stop。"
)
_LINK: Final = re.compile(r"https?://\S+|!?\[([^\]]*)\]\([^)]*\)")
MAX_MESSAGE: Final = 200


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run leaves behind. ``good`` is False when it failed or ran out of budget: the penalty stays."""

    state: CycleState
    good: bool
    tokens: int
    record: RunRecord
    reviewed: Sequence[Mapping[str, str]] = ()


class Cycle:
    """Runs a bench. Knows no schedule."""

    def __init__(
        self,
        *,
        reasoner: Reasoner,
        prompts: Prompts,
        journal: Journal,
        messenger: Messenger,
        clock: Clock,
        character: Callable[[str], Awaitable[str]],
    ) -> None:
        self._reasoner = reasoner
        self._prompts = prompts
        self._journal = journal
        self._messenger = messenger
        self._clock = clock
        self._character = character

    async def run(self, bench: Bench) -> Ran:
        """One run. A failure of the model is an outcome, not an exception; cancellation is journalled and passed on."""
        started = self._clock.now()
        run_id = f"{started:%Y%m%dT%H%M%S}_{bench.account}_{bench.state.total_runs + 1}"
        steps: list[Step] = []
        record = RunRecord(run_id, bench.account, started.isoformat(timespec="seconds"))
        _log.info("[Subconscious] Cycle #%d 开始（用户 %s）", bench.state.total_runs + 1, bench.account)
        try:
            outcome = await self._reason(bench, steps)
        except asyncio.CancelledError:
            await self._finish(bench, replace(record, result="aborted", steps=tuple(steps)))
            _log.info("[Subconscious] 用户又开始聊天，本轮中止")
            raise
        except AmritaMemoryError as e:
            tokens = e.tokens if isinstance(e, ReasoningFailed) else 0
            failed = replace(record, error=str(e), tokens=tokens, steps=tuple(steps))
            return await self._failed(bench, failed, str(e))
        except Exception as e:  # noqa: BLE001 - the border of the job: a run must never take the bot down
            _log.exception("[Subconscious] 本轮出错")
            return await self._failed(
                bench, replace(record, error=type(e).__name__, steps=tuple(steps)), type(e).__name__
            )
        return await self._ended(bench, replace(record, steps=tuple(steps)), outcome)

    async def _reason(self, bench: Bench, steps: list[Step]) -> Outcome:
        async def call(tool: ToolSpec, given: Mapping[str, Any]) -> str:
            begun = self._clock.monotonic()
            answer = await run_tool(tool, bench, given=given)
            status = str(json.loads(answer).get("status"))
            steps.append(Step(tool.name, dict(given), status, round((self._clock.monotonic() - begun) * 1000)))
            _log.info("[Subconscious] %s → %s", tool.name, status)
            return answer

        settings, now = bench.settings, self._clock.now()
        return await self._reasoner.run(
            account=bench.account,
            system=await self._system(bench, now),
            opening=_OPENING.format(number=bench.state.total_runs + 1),
            tools=_tools(bench),
            call=call,
            stopped=lambda: bench.stop_summary is not None,
            limits=Limits(
                iterations=settings.max_iterations,
                loop_threshold=settings.loop_detect_threshold,
                tokens=bench.state.spent.tokens_left(now, settings.daily_token_budget),
                compress=settings.enable_memory_compress,
            ),
        )

    async def _system(self, bench: Bench, now: datetime) -> str:
        settings = bench.settings
        time = now.isoformat(timespec="seconds")
        who = {"current_time": time, "target_user_id": bench.account}
        main = {
            **who,
            "character_prompt": await self._character(bench.account),
            "last_run": bench.state.last_run.isoformat(timespec="seconds") if bench.state.last_run else "",
            "last_abstracts": list(bench.state.last_abstracts),
            "total_runs": bench.state.total_runs,
        }
        parts = [(settings.prompt_file, main), (settings.prompt_profile_file, who)]
        if bench.knowledge is not None:
            parts.append((settings.prompt_knowledge_file, who))
        texts = [await asyncio.to_thread(self._prompts.render, file, variables) for file, variables in parts]
        return "\n\n".join(texts)

    async def _ended(self, bench: Bench, record: RunRecord, outcome: Outcome) -> Ran:
        tokens = outcome.prompt_tokens + outcome.completion_tokens
        now = self._clock.now()
        state = replace(bench.state, spent=bench.state.spent.with_tokens(now, tokens))
        if outcome.ending == "budget":
            _log.warning("[Subconscious] 今日 token 预算已用完，本轮提前结束，明天继续")
            record = replace(record, result="budget", tokens=tokens, summary=bench.stop_summary or "")
            return Ran(state, False, tokens, await self._finish(bench, record))
        abstract = bench.stop_summary or outcome.abstract or _described(record.steps)
        state = state.after_run(now, abstract, keep=bench.settings.max_abstracts, cursor=bench.cursor)
        state = state.without_suggestions(bench.reviewed)
        state, spoken = await self._speak(bench, state)
        tokens += spoken
        record = replace(record, tokens=tokens, summary=abstract)
        _log.info("[Subconscious] Cycle done (total_runs=%d, tokens=%d)", state.total_runs, tokens)
        return Ran(state, True, tokens, await self._finish(bench, record), tuple(bench.reviewed))

    async def _failed(self, bench: Bench, record: RunRecord, why: str) -> Ran:
        _log.warning("[Subconscious] 本轮没有完成，惩罚保留：%s", why)
        state = replace(bench.state, spent=bench.state.spent.with_tokens(self._clock.now(), record.tokens))
        return Ran(state, False, record.tokens, await self._finish(bench, replace(record, result="failed")))

    async def _finish(self, bench: Bench, record: RunRecord) -> RunRecord:
        ended = self._clock.now().isoformat(timespec="seconds")
        whole = replace(record, ended_at=ended, effects=tuple(bench.effects))
        await asyncio.shield(asyncio.to_thread(self._journal.write, whole))
        return whole

    async def _speak(self, bench: Bench, state: CycleState) -> tuple[CycleState, int]:
        """Word and deliver what the run wants to say; what cannot be delivered now waits, and is shown once."""
        if bench.intent is None:
            return state, 0
        now = self._clock.now()
        intent, context = bench.intent
        variables = {
            "character_prompt": await self._character(bench.account),
            "intent": intent,
            "memory_context": context,
            "current_time": now.isoformat(timespec="seconds"),
        }
        system = await asyncio.to_thread(self._prompts.render, bench.settings.prompt_send_file, variables)
        try:
            text, tokens = await self._reasoner.write(account=bench.account, system=system, text="请写这一句话。")
        except AmritaMemoryError as e:
            _log.warning("[Subconscious] 想说的话没有写成：%s", e)
            return state, 0
        text = presentable(text)
        state = replace(state, spent=state.spent.with_tokens(now, tokens).with_message(now))
        if text and not await self._messenger.send(bench.account, text):
            waiting = {"content": text, "timestamp": now.isoformat(timespec="seconds")}
            state = replace(state, pending_messages=(*state.pending_messages, waiting)[-MAX_PENDING:])
        return state, tokens


def presentable(text: str) -> str:
    """What may be sent to a person: one bounded line without links."""
    return cut(one_line(_LINK.sub(lambda m: m[1] or "", clean(text))), MAX_MESSAGE)


def _tools(bench: Bench) -> Sequence[ToolSpec]:
    hidden = {"subconscious_send_to_user"} if not bench.settings.allow_send_to_user else set[str]()
    return [
        tool
        for tool in TOOLBOX
        if tool.name not in hidden
        and (
            bench.knowledge is not None
            or not tool.name.startswith(("subconscious_knowledge", "subconscious_read_sugg"))
        )
    ]


def _described(steps: Sequence[Step]) -> str:
    names = [step.tool.removeprefix("subconscious_") for step in steps if step.status == "success"]
    return f"没有留下总结；用过：{'、'.join(dict.fromkeys(names))}" if names else ""
