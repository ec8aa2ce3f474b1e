"""What one run works with: the services for its target, and the list of what it has done to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias

from amrita_plugin_memory.facts import Facts
from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.scope import Caller
from amrita_plugin_memory.knowledge import Knowledge
from amrita_plugin_memory.memo import Memo
from amrita_plugin_memory.settings import SubconsciousSettings

from .rules.state import CycleState

Kind: TypeAlias = Literal["fact", "knowledge", "profile", "memo"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One change of one thing, as JSON values; ``before`` None: it was not there, ``after`` None: it is gone."""

    kind: Kind
    id: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Said:
    """One chat turn of the target. ``id`` grows in the order of the conversation's lines."""

    id: str
    at: datetime | None
    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class Archived:
    """One conversation that is over, summarised. ``failed`` summaries are not cached."""

    id: str
    title: str
    summary: str
    turns: int


class Transcripts(Protocol):
    """What the target and the bot said to each other."""

    async def since(self, account: str, cursor: str, limit: int) -> Sequence[Said]:
        """The newest ``limit`` turns after the turn ``cursor`` ("" from the beginning), oldest first."""
        ...

    async def sessions(self, account: str, limit: int) -> Sequence[Archived]:
        """The newest ``limit`` conversations, newest first."""
        ...


class Profiles(Protocol):
    """The portrait of a person, as Markdown."""

    async def read(self, account: str) -> str:
        """The whole text; "" when there is none."""
        ...

    async def replace(self, account: str, text: str) -> None:
        """Write it whole."""
        ...


@dataclass(slots=True)
class Bench:
    """One run's workplace. Mutable, and thrown away with the run."""

    account: str
    caller: Caller
    facts: Facts
    memo: Memo
    knowledge: Knowledge | None
    profiles: Profiles
    transcripts: Transcripts
    settings: SubconsciousSettings
    clock: Clock
    state: CycleState
    effects: list[Effect] = field(default_factory=list[Effect])
    stop_summary: str | None = None
    cursor: str = ""
    reviewed: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    intent: tuple[str, str] | None = None  # what to say to the user, and why

    def record(self, kind: Kind, id: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        """Write down a change that was made."""
        self.effects.append(Effect(kind, id, before, after))
