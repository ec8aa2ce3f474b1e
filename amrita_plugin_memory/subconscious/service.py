"""L3 as the host sees it: told when somebody speaks, runs a cycle in the silence, survives restarts.

Event-driven: nothing is scheduled until a target says something, and after a run nothing is scheduled either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from amrita_plugin_memory.facts import Facts
from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, Forbidden, LimitReached, Unavailable
from amrita_plugin_memory.kernel.locks import KeyedLocks
from amrita_plugin_memory.kernel.scope import Caller, UniId
from amrita_plugin_memory.knowledge import Knowledge
from amrita_plugin_memory.memo import Memo
from amrita_plugin_memory.settings import SubconsciousSettings

from .bench import Bench, Profiles, Transcripts
from .cycle import Cycle, Ran
from .due import DueRuns
from .ports import Messenger, StateStore, Timer
from .rules.backoff import Backoff, Plan
from .rules.state import CycleState, dump, load

_log = logging.getLogger("amrita_memory.subconscious")
GRACE: Final = timedelta(seconds=60)  # a run missed during downtime waits this long after the start
LEASE: Final = timedelta(minutes=35)  # longer than any run may take
SETTLE: Final = 1.0  # seconds within which the messages of a burst are written down once


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What the service works with."""

    facts: Facts
    memo: Memo
    knowledge: Knowledge | None
    profiles: Profiles
    transcripts: Transcripts
    states: StateStore
    due: DueRuns
    timer: Timer
    messenger: Messenger
    cycle: Cycle
    clock: Clock


class Subconscious:
    """One object for all targets of a program."""

    def __init__(
        self,
        parts: Collaborators,
        *,
        settings: Callable[[], SubconsciousSettings],
        owner: str,
        settle: float = SETTLE,
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._owner = owner
        self._settle = settle
        self._plans: dict[str, Plan] = {}
        self._runs: dict[str, asyncio.Task[Ran]] = {}
        self._writers: dict[str, asyncio.Task[None]] = {}
        self._locks = KeyedLocks()
        parts.due.handle(self._due)

    async def start(self) -> None:
        """Take up what was due before the restart; a missed run happens once, a minute from now."""
        await self._parts.due.recover()
        pending = await self._parts.due.pending()
        for account in self._settings().targets:
            state = await self._state(account)
            plan = Plan(state.plan.penalty, pending.get(account)).resumed(self._parts.clock.now(), GRACE)
            self._plans[account] = plan
            _log.info("[Subconscious] Starting for user=%s", account)
            if plan.due is None:
                _log.info("[Subconscious] Idle — waiting for user chat to trigger first run")
            else:
                self._arm(account)

    async def stop(self) -> None:
        """Write down what is not yet written and let go; a run at work is aborted and stays due."""
        for account in self._plans:
            self._parts.timer.disarm(_alarm(account))
        for run in self._runs.values():
            run.cancel()
        if self._runs:
            await asyncio.wait(list(self._runs.values()), timeout=5)
        await asyncio.gather(*self._writers.values(), return_exceptions=True)

    def is_target(self, account: str) -> bool:
        """Whether this person has a cycle."""
        return self._settings().enabled and account in self._settings().targets

    async def spoke(self, account: str, *, private: bool) -> None:
        """A target said something: a run at work is aborted, the next one moves away. Never raises to the chat."""
        if not self.is_target(account):
            return
        plan = self._plans.get(account, Plan()).spoke(self._parts.clock.now(), self._backoff())
        self._plans[account] = plan
        self._arm(account)
        if (run := self._runs.get(account)) is not None:
            run.cancel()  # not awaited: the reply does not wait for the run's journal
        self._write_down(account, deliver=private)
        _log.debug("[Subconscious] 用户 %s 在聊天，整理推迟到 %s（惩罚 %d）", account, plan.due, plan.penalty)

    async def run_now(self, account: str) -> str:
        """Run a cycle at once and say in one sentence how it went.

        Raises:
            Forbidden: not a target, or switched off.
            LimitReached: a run is at work, or the budget of the day is spent.

        """
        if not self.is_target(account):
            raise Forbidden("离线巩固循环没有为这个用户启用（config.toml 的 [subconscious]）")
        ran = await self._run(account)
        if ran is None:
            raise LimitReached("已有一轮整理在进行，或今日 token 预算已用完")
        outcome = ran.record.summary or ran.record.error or "没有改动"
        return f"{'整理完成' if ran.good else '整理没有完成'}（{ran.tokens} tokens）：{outcome}"

    async def suggest(self, suggestion: Mapping[str, str]) -> None:
        """Queue a suggestion for the knowledge base, for the first target's next run.

        Raises:
            Unavailable: L3 or the knowledge base is switched off, so that nobody would ever read it.

        """
        settings = self._settings()
        if not settings.enabled or not settings.enable_knowledge or not settings.targets:
            raise Unavailable("知识库建议没有人审：离线巩固循环未启用")
        await self._change(settings.targets[0], lambda state: state.with_suggestion(suggestion))

    async def forget(self, account: str) -> None:
        """Stop what runs or waits for this person. What is stored is not touched here."""
        self._plans[account] = Plan()
        for task in (self._runs.get(account), self._writers.pop(account, None)):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        self._parts.timer.disarm(_alarm(account))
        await self._parts.due.drop(account)

    async def _due(self, account: str) -> dict[str, Any]:
        """What a due task of the AMOS root does. Returns how it went; a target that is none any more is let go."""
        if not self.is_target(account):
            return {"skipped": "not a target"}
        ran = await self._run(account)
        return {"run": ran.record.id, "result": ran.record.result} if ran else {"skipped": "busy or over budget"}

    async def _ring(self) -> None:
        try:
            await self._parts.due.run()
            await self._leftovers()
        except AmritaMemoryError as e:
            _log.warning("[Subconscious] 到点的整理没有开始：%s", e)

    async def _leftovers(self) -> None:
        """A target that is overdue still: another process runs it, or its task waits to be picked up again."""
        now, pending = self._parts.clock.now(), await self._parts.due.pending()
        for account, plan in list(self._plans.items()):
            if plan.due is None or plan.due > now or account in self._runs:
                continue
            self._plans[account] = replace(plan, due=now + GRACE if account in pending else None)
            self._arm(account)

    async def _run(self, account: str) -> Ran | None:
        async with self._locks.hold(account):
            if account in self._runs:
                return None
            settings, now = self._settings(), self._parts.clock.now()
            state = await self._state(account)
            if state.spent.tokens_left(now, settings.daily_token_budget) == 0:
                _log.warning("[Subconscious] 今日 token 预算已用完，本轮跳过，明天继续")
                self._plans[account] = self._plans.get(account, Plan()).failed()
                return None
            if not await self._lease(account):
                _log.info("[Subconscious] 另一个进程正在整理用户 %s", account)
                return None
            run = asyncio.get_running_loop().create_task(self._parts.cycle.run(self._bench(account, state)))
            self._runs[account] = run
        try:
            return await self._settled(account, await asyncio.shield(run))
        except asyncio.CancelledError:
            run.cancel()
            await asyncio.wait([run])
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            return None  # the user spoke: only the run was cancelled, not whoever waits for it
        finally:
            self._runs.pop(account, None)
            await self._release(account)

    async def _settled(self, account: str, ran: Ran) -> Ran:
        plan = self._plans.get(account, Plan())
        self._plans[account] = plan.succeeded() if ran.good else plan.failed()
        await self._change(account, lambda state: _merged(state, ran, self._plans[account]))
        if self._plans[account].due is None:
            self._parts.timer.disarm(_alarm(account))
        return ran

    def _bench(self, account: str, state: CycleState) -> Bench:
        parts = self._parts
        return Bench(
            account=account,
            caller=Caller(UniId.private(account), door="l3", session=UniId.private(account).key()),
            facts=parts.facts,
            memo=parts.memo,
            knowledge=parts.knowledge if self._settings().enable_knowledge else None,
            profiles=parts.profiles,
            transcripts=parts.transcripts,
            settings=self._settings(),
            clock=parts.clock,
            state=state,
        )

    def _arm(self, account: str) -> None:
        due = self._plans[account].due
        if due is not None:
            self._parts.timer.arm(_alarm(account), due, self._ring)

    def _write_down(self, account: str, *, deliver: bool) -> None:
        """Keep penalty and due moment, once for a burst of messages, off the way of the reply."""
        writer = self._writers.get(account)
        if writer is None or writer.done():
            self._writers[account] = asyncio.get_running_loop().create_task(self._write(account, deliver))

    async def _write(self, account: str, deliver: bool) -> None:
        try:
            written: Plan | None = None
            while written != self._plans[account]:
                written = self._plans[account]
                if written.due is not None:
                    await self._parts.due.put(account, written.due)
                await self._change(account, lambda state: replace(state, plan=self._plans[account]))
                await asyncio.sleep(self._settle)
            if deliver:
                await self._deliver(account)
        except AmritaMemoryError as e:
            _log.warning("[Subconscious] 推迟的时刻没有写下，重启后会忘记：%s", e)

    async def _deliver(self, account: str) -> None:
        """What could not be said earlier is said now, each thing once."""
        state = await self._state(account)
        for message in state.pending_messages:
            if not await self._parts.messenger.send(account, message.get("content", "")):
                return
            await self._change(account, lambda s, gone=message: _without_message(s, gone))

    async def _lease(self, account: str) -> bool:
        """Take the target for this process; False while another one has it."""
        now = self._parts.clock.now()

        def take(row: dict[str, Any] | None) -> dict[str, Any]:
            held = row or {}
            if held.get("owner") not in (None, self._owner) and float(held.get("until", 0)) > now.timestamp():
                raise LimitReached("另一个进程正在整理")
            return {"owner": self._owner, "until": (now + LEASE).timestamp()}

        try:
            await self._parts.states.change(f"lease:{account}", take)
        except LimitReached:
            return False
        return True

    async def _release(self, account: str) -> None:
        await self._parts.states.change(
            f"lease:{account}", lambda row: {} if (row or {}).get("owner") == self._owner else row or {}
        )

    async def _state(self, account: str) -> CycleState:
        return load(await self._parts.states.load(_uid(account)) or await self._inherited(account))

    async def _inherited(self, account: str) -> dict[str, Any] | None:
        """The published plugin kept one row for its one target; the first target takes it over, the row stays."""
        first = next(iter(self._settings().targets), "")
        return await self._parts.states.load(LEGACY_UID) if account == first else None

    async def _change(self, account: str, edit: Callable[[CycleState], CycleState]) -> None:
        inherited = await self._inherited(account)
        await self._parts.states.change(_uid(account), lambda row: dump(edit(load(row or inherited))))

    def _backoff(self) -> Backoff:
        settings = self._settings()
        return Backoff(
            settings.rethink_base_delay_minutes,
            settings.rethink_penalty_multiplier,
            settings.rethink_max_delay_minutes,
        )


LEGACY_UID: Final = "amrita_memory"


def _uid(account: str) -> str:
    return UniId.private(account).key()


def _alarm(account: str) -> str:
    return f"subconscious_{account}"


def _merged(stored: CycleState, ran: Ran, plan: Plan) -> CycleState:
    """The state after a run, with the suggestions that came while it ran."""
    known = [dict(one) for one in ran.state.suggestions]
    fresh = tuple(one for one in stored.suggestions if dict(one) not in known and dict(one) not in _reviewed(ran))
    return replace(ran.state, suggestions=(*ran.state.suggestions, *fresh), plan=plan)


def _reviewed(ran: Ran) -> list[dict[str, str]]:
    return [dict(one) for one in ran.reviewed]


def _without_message(state: CycleState, gone: Mapping[str, str]) -> CycleState:
    rest = [one for one in state.pending_messages if dict(one) != dict(gone)]
    return replace(state, pending_messages=tuple(rest))
