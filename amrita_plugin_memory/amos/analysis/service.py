"""Verbs of the analysis: ask the injected function, read its answer, fall back to the local rules."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.amos.memory import Sessions
from amrita_plugin_memory.amos.memory.sessions.turns import Turn, dialogue, prompt_message
from amrita_plugin_memory.kernel.clock import Clock, SystemClock, iso_seconds
from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.locks import KeyedLocks
from amrita_plugin_memory.kernel.scope import Scope

from . import local, rules, state
from .rules import MessageKind, SessionAnalysis, TurnAnalysis, TurningPoint

MAX_TURNS: Final = 999
log = logging.getLogger("amrita_memory.amos")


@dataclass(slots=True)
class SessionAnalyzer:
    """Analyses sessions of one root.

    ``analyze_fn(user, assistant)`` and ``analyze_session_fn(messages)`` may be plain or async and may answer with our
    types, an object, or text with JSON in it; ``timeout`` are the seconds an answer may take.
    """

    files: FileRoot
    sessions: Sessions
    analyze_fn: Callable[..., Any] | None = None
    analyze_session_fn: Callable[..., Any] | None = None
    clock: Clock = field(default_factory=SystemClock)
    timeout: float = 60.0
    _busy: KeyedLocks = field(default_factory=KeyedLocks)

    async def analyze_turn(self, user: str, assistant: str) -> TurnAnalysis:
        """What one turn says about its user."""
        if self.analyze_fn is not None:
            found = rules.read_turn(await self._ask(self.analyze_fn, user, assistant))
            if found is not None:
                return found
        return local.analyze_turn(user, assistant)

    def classify(self, message: str) -> MessageKind:
        """The kind of one message, by the local rules."""
        return local.classify(message)

    async def analyze(self, scope: Scope, recent_turns: int = MAX_TURNS) -> SessionAnalysis:
        """The last ``recent_turns`` uncompressed turns of a session as a whole."""
        if recent_turns < 1:
            raise InvalidInput("recent_turns 至少为 1")
        turns = (await asyncio.to_thread(self.sessions.turns, scope))[-recent_turns:]
        return await self._analysis(turns, None)

    async def incremental(self, scope: Scope) -> SessionAnalysis:
        """What has been said since the last call, merged with what was known; the place is kept by turn id."""
        async with self._busy.hold(scope):
            turns = await asyncio.to_thread(self.sessions.turns, scope)
            known, before = await asyncio.to_thread(state.load, self.files, scope)
            new = state.fresh(turns, known)
            if not new:
                return before or SessionAnalysis()
            insight = rules.merged(before, await self._analysis(new, before))
            now = iso_seconds(self.clock.now())
            await asyncio.to_thread(state.save, self.files, scope, turns, insight=insight, now=now)
            return insight

    async def facts(self, scope: Scope, turn_count: int = 10) -> list[str]:
        """Stable facts and preferences from the last ``turn_count`` turns, each once."""
        if turn_count < 1:
            raise InvalidInput("turn_count 至少为 1")
        turns = (await asyncio.to_thread(self.sessions.turns, scope))[-turn_count:]
        if self.analyze_fn is None:
            return local.facts([_said(turn) for turn in turns])
        found: list[str] = []
        for turn in turns:
            one = await self.analyze_turn(*_said(turn))
            found += [*one.facts, *one.preferences]
        return list(dict.fromkeys(found))

    async def turning_points(self, scope: Scope) -> list[TurningPoint]:
        """Turns of the session at which mood or intent changed."""
        return (await self.analyze(scope)).turning_points

    async def _analysis(self, turns: list[Turn], before: SessionAnalysis | None) -> SessionAnalysis:
        ids = [turn.id for turn in turns]
        if self.analyze_session_fn is not None and turns:
            messages = rules.ask_about_session(dialogue(turns), before)
            found = rules.read_session(await self._ask(self.analyze_session_fn, messages), ids)
            if found is not None:
                return found
        return local.analyze_session([_said(turn) for turn in turns], ids)

    async def _ask(self, ask: Callable[..., Any], *given: Any) -> Any:
        try:
            async with asyncio.timeout(self.timeout):
                answer = ask(*given) if inspect.iscoroutinefunction(ask) else await asyncio.to_thread(ask, *given)
                return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - a border: the function is the program's own; the rules answer instead
            log.warning("analysis falls back to the local rules: %s", type(error).__name__)
            return None


def _said(turn: Turn) -> tuple[str, str]:
    said = [prompt_message(record) for record in turn.records]
    return tuple("\n".join(m.content for m in said if m.role == role) for role in ("user", "assistant"))  # pyright: ignore[reportReturnType]
