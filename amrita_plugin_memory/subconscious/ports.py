"""What the cycle needs from outside: a model that reasons, a timer, a way to the user, and a place for its state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias

from amrita_plugin_memory.kernel.errors import Unavailable
from amrita_plugin_memory.kernel.toolspec import ToolSpec

CallTool: TypeAlias = Callable[[ToolSpec, Mapping[str, Any]], Awaitable[str]]
Ending: TypeAlias = Literal["stopped", "finished", "budget", "iterations"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run. ``tokens`` None means no bound."""

    iterations: int
    loop_threshold: int
    tokens: int | None
    compress: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended and what it cost. ``abstract`` is what the host's compactor made of a long context, if it did."""

    ending: Ending
    prompt_tokens: int
    completion_tokens: int
    abstract: str = ""


class ReasoningFailed(Unavailable):
    """The model could not be reached or answered nonsense; ``tokens`` is what it cost until then."""

    def __init__(self, message: str, *, tokens: int = 0) -> None:
        super().__init__(message)
        self.tokens = tokens


class Reasoner(Protocol):
    """Runs the ReAct loop with an isolated set of tools."""

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
        """One run; ``stopped`` is asked after each round.

        Raises:
            ReasoningFailed: the model could not be reached or answered nonsense; what tools did until then stays.

        """
        ...

    async def write(self, *, account: str, system: str, text: str) -> tuple[str, int]:
        """One plain answer without tools, and the tokens it cost."""
        ...


class Timer(Protocol):
    """Calls back at a moment; one alarm a name, the last one set counts."""

    def arm(self, name: str, when: datetime, callback: Callable[[], Awaitable[None]]) -> None:
        """Set or move the alarm."""
        ...

    def disarm(self, name: str) -> None:
        """Remove the alarm; no error when there is none."""
        ...


class Messenger(Protocol):
    """The way to a person."""

    async def send(self, account: str, text: str) -> bool:
        """Send a private message by the bot the person talks with; False when it cannot be delivered now."""
        ...


class StateStore(Protocol):
    """One JSON object a name, changed in one step across processes."""

    async def load(self, uid: str) -> dict[str, Any] | None:
        """The object; None when there is none."""
        ...

    async def change(self, uid: str, edit: Callable[[dict[str, Any] | None], dict[str, Any]]) -> dict[str, Any]:
        """Replace it by ``edit(current)``; ``edit`` may run again, and what it raises reaches the caller."""
        ...
