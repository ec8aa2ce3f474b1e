"""In-memory twins of the ports, for tests and simulations."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from amrita_plugin_memory.kernel.toolspec import ToolSpec

from .ports import CallTool, Ending, Limits, Outcome


@dataclass(slots=True)
class MemoryStateStore:
    """States in a dict."""

    states: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])

    async def load(self, uid: str) -> dict[str, Any] | None:
        """See StateStore."""
        return copy.deepcopy(self.states.get(uid))

    async def change(self, uid: str, edit: Callable[[dict[str, Any] | None], dict[str, Any]]) -> dict[str, Any]:
        """See StateStore."""
        self.states[uid] = copy.deepcopy(edit(copy.deepcopy(self.states.get(uid))))
        return copy.deepcopy(self.states[uid])


@dataclass(slots=True)
class ManualTimer:
    """Alarms that ring when a test says so."""

    alarms: dict[str, tuple[datetime, Callable[[], Awaitable[None]]]] = field(
        default_factory=dict[str, "tuple[datetime, Callable[[], Awaitable[None]]]"]
    )

    def arm(self, name: str, when: datetime, callback: Callable[[], Awaitable[None]]) -> None:
        """See Timer."""
        self.alarms[name] = (when, callback)

    def disarm(self, name: str) -> None:
        """See Timer."""
        self.alarms.pop(name, None)

    async def ring(self, now: datetime) -> int:
        """Call back every alarm that is due; how many were."""
        due = [name for name, (when, _) in self.alarms.items() if when <= now]
        for name in due:
            await self.alarms.pop(name)[1]()
        return len(due)


@dataclass(slots=True)
class MemoryMessenger:
    """Messages in a list; ``online=False`` delivers none."""

    sent: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    online: bool = True

    async def send(self, account: str, text: str) -> bool:
        """See Messenger."""
        if self.online:
            self.sent.append((account, text))
        return self.online


@dataclass(slots=True)
class ScriptedReasoner:
    """Plays rounds of tool calls. A round is a list of ``(tool name, arguments)``; an exception in it is raised.

    ``seen`` holds what the model would have been shown, ``results`` what the tools answered.
    """

    rounds: Sequence[Sequence[tuple[str, Mapping[str, Any]]] | Exception]
    tokens_a_round: int = 100
    answer: str = "写好的话"
    seen: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    results: list[str] = field(default_factory=list[str])
    offered: list[str] = field(default_factory=list[str])
    before_round: Callable[[int], Awaitable[None]] | None = None

    async def run(
        self,
        *,
        account: str,
        system: str,
        opening: str,
        tools: Sequence[ToolSpec],
        call: CallTool,
        stopped: Callable[[], bool],
        limits: Limits,
    ) -> Outcome:
        """See Reasoner."""
        self.seen.append((system, opening))
        self.offered = [tool.name for tool in tools]
        named = {tool.name: tool for tool in tools}
        ending: Ending = "finished"
        cost = 0
        for number, round_ in enumerate(self.rounds):
            if number >= limits.iterations:
                ending = "iterations"
                break
            if limits.tokens is not None and cost >= limits.tokens:
                ending = "budget"
                break
            if self.before_round is not None:
                await self.before_round(number)
            if isinstance(round_, Exception):
                raise round_
            cost += self.tokens_a_round
            self.results += [await call(named[name], arguments) for name, arguments in round_]
            if stopped():
                ending = "stopped"
                break
        return Outcome(ending, cost, 0)

    async def write(self, *, account: str, system: str, text: str) -> tuple[str, int]:
        """See Reasoner."""
        return self.answer, self.tokens_a_round
