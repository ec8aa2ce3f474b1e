"""What a target's cycle remembers between runs, as one JSON payload. Pure.

Names of the published plugin are kept (``total_runs``, ``last_run_time``, ``last_abstracts``, ``pending_messages``,
``knowledge_suggestions``, ``penalty``), so that its row opens as it is; names we do not know survive a change.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, cast

from amrita_plugin_memory.kernel.clock import parse_iso

from .backoff import Plan
from .budget import Spent

MAX_PENDING: Final = 10
MAX_SUGGESTIONS: Final = 50


@dataclass(frozen=True, slots=True)
class CycleState:
    """One target's state. ``cursor`` is the id of the last chat turn a successful run has seen."""

    total_runs: int = 0
    last_run: datetime | None = None
    last_abstracts: tuple[str, ...] = ()
    pending_messages: tuple[Mapping[str, str], ...] = ()
    suggestions: tuple[Mapping[str, str], ...] = ()
    plan: Plan = field(default_factory=Plan)
    spent: Spent = field(default_factory=Spent)
    cursor: str = ""
    other: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def after_run(self, now: datetime, abstract: str, *, keep: int, cursor: str) -> CycleState:
        """The state after a run that came to its end; the newest ``keep`` abstracts stay."""
        texts = (*self.last_abstracts, abstract) if abstract else self.last_abstracts
        return replace(
            self,
            total_runs=self.total_runs + 1,
            last_run=now,
            last_abstracts=texts[-keep:],
            plan=self.plan.succeeded(),
            cursor=cursor or self.cursor,
        )

    def with_suggestion(self, suggestion: Mapping[str, str]) -> CycleState:
        """One more suggestion to review; the oldest goes when there are too many."""
        return replace(self, suggestions=(*self.suggestions, suggestion)[-MAX_SUGGESTIONS:])

    def without_suggestions(self, seen: Sequence[Mapping[str, str]]) -> CycleState:
        """The queue without those that a run has reviewed; what came meanwhile stays."""
        gone = [dict(one) for one in seen]
        return replace(self, suggestions=tuple(one for one in self.suggestions if dict(one) not in gone))


_KNOWN: Final = frozenset(
    ("total_runs", "last_run_time", "last_abstracts", "pending_messages", "knowledge_suggestions", "penalty", "due",
     "spent", "cursor")
)  # fmt: skip


def load(payload: Mapping[str, Any] | None) -> CycleState:
    """Read a payload; whatever is missing or of another type counts as not there."""
    data = payload or {}
    spent = _mapping(data.get("spent"))
    return CycleState(
        total_runs=_count(data.get("total_runs")),
        last_run=parse_iso(str(data.get("last_run_time") or "")),
        last_abstracts=tuple(str(one) for one in _list(data.get("last_abstracts"))),
        pending_messages=_texts(data.get("pending_messages")),
        suggestions=_texts(data.get("knowledge_suggestions")),
        plan=Plan(_count(data.get("penalty")), parse_iso(str(data.get("due") or ""))),
        spent=Spent(str(spent.get("day") or ""), _count(spent.get("tokens")), _count(spent.get("messages"))),
        cursor=str(data.get("cursor") or ""),
        other={name: value for name, value in data.items() if name not in _KNOWN},
    )


def dump(state: CycleState) -> dict[str, Any]:
    """The payload of a state."""
    return {
        **state.other,
        "total_runs": state.total_runs,
        "last_run_time": state.last_run.isoformat() if state.last_run else None,
        "last_abstracts": list(state.last_abstracts),
        "pending_messages": [dict(one) for one in state.pending_messages],
        "knowledge_suggestions": [dict(one) for one in state.suggestions],
        "penalty": state.plan.penalty,
        "due": state.plan.due.isoformat() if state.plan.due else None,
        "spent": {"day": state.spent.day, "tokens": state.spent.tokens, "messages": state.spent.messages},
        "cursor": state.cursor,
    }


def parse_payload(text: str) -> dict[str, Any]:
    """The stored text as an object; anything else counts as empty."""
    try:
        return _mapping(json.loads(text))
    except ValueError:
        return {}


def _count(value: object) -> int:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return 0
    return max(int(value), 0)


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[Mapping[str, str], ...]:
    return tuple({str(k): str(v) for k, v in _mapping(one).items()} for one in _list(value) if _mapping(one))
