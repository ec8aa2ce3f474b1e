"""What `AMOS.create` takes. The names are the seed's; what only we have comes last."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from amrita_plugin_memory.amos.compression import CompressionRules
from amrita_plugin_memory.amos.memory.sessions.service import MAX_MESSAGE
from amrita_plugin_memory.amos.types import SummarizeFn
from amrita_plugin_memory.kernel.clock import Clock, SystemClock
from amrita_plugin_memory.kernel.errors import InvalidInput, shorten


@dataclass(frozen=True, slots=True, kw_only=True)
class AMOSOptions:
    """Settings of one AMOS object.

    Args:
        root_dir: the AMOS_ROOT folder; made when it is not there.
        actor: the user; without one, the environment variable AMOS_ACTOR, else "anonymous".
        agent: an agent of that user, with a soul and sessions of its own.
        session_id: the session that is meant when a call names none; "default" without one.
        llm_config: settings of the language model device.
        summarize_fn: ``(text, instruction) -> summary``, plain or async; without it nothing is compressed.
        analyze_fn: ``(user, assistant) -> TurnAnalysis``.
        analyze_session_fn: asks a model about a whole session.
        compile_fn: asks a model to turn a workflow into code.
        max_history_turns: turns a session may hold before it is compressed.
        keep_recent_turns: turns that a compression leaves in place.
        summary_max_chars: hard bound of a summary.
        enable_index: keep ``index.json`` and tags.
        sandbox: settings of the sandbox that runs tools.
        auto_grant_actor: give an actor without an access list one that allows everything that is its own.
        archive_zone: time zone (IANA name) that decides which day an archived turn belongs to.
        summarize_timeout: seconds a summary may take.
        max_message_chars: the longest message that is stored.
        fsync: wait for the disk before a write counts as done.
        clock: where the time comes from.

    """

    root_dir: str | Path
    actor: str | None = None
    agent: str | None = None
    session_id: str | None = None
    llm_config: Mapping[str, Any] | None = None
    summarize_fn: SummarizeFn | None = None
    analyze_fn: Callable[..., Any] | None = None
    analyze_session_fn: Callable[..., Any] | None = None
    compile_fn: Callable[..., Any] | None = None
    max_history_turns: int = 20
    keep_recent_turns: int = 5
    summary_max_chars: int = 800
    enable_index: bool = True
    sandbox: Mapping[str, Any] = field(default_factory=dict[str, Any])
    auto_grant_actor: bool = False
    archive_zone: str = "UTC"
    summarize_timeout: float = 60.0
    max_message_chars: int = MAX_MESSAGE
    fsync: bool = True
    clock: Clock = field(default_factory=SystemClock)

    @classmethod
    def of(cls, options: AMOSOptions | None, given: Mapping[str, Any]) -> AMOSOptions:
        """Options from either call form of `AMOS.create`; keywords win over ``options``.

        Raises:
            InvalidInput: an unknown keyword, or no root_dir.

        """
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise InvalidInput(f"AMOS.create 没有参数 {'、'.join(unknown)}，可用：{' '.join(sorted(known))}")
        base = {} if options is None else {f.name: getattr(options, f.name) for f in fields(cls)}
        merged = {**base, **given}
        if not merged.get("root_dir"):
            raise InvalidInput("AMOS.create 需要 root_dir，请给出根目录的位置")
        return cls(**merged)

    @property
    def actor_or_default(self) -> str:
        """The actor, also when none was named."""
        return self.actor or os.environ.get("AMOS_ACTOR") or "anonymous"

    def rules(self) -> CompressionRules:
        """The bounds of the history."""
        return CompressionRules(
            max_history_turns=self.max_history_turns,
            keep_recent_turns=self.keep_recent_turns,
            summary_max_chars=self.summary_max_chars,
            zone=zone(self.archive_zone),
            timeout=self.summarize_timeout,
        )


def zone(name: str) -> tzinfo:
    """A time zone by its IANA name; UTC needs no zone data on the machine.

    Raises:
        InvalidInput: no such zone here.

    """
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidInput(f"时区 {shorten(name)} 不存在，请写成 Asia/Shanghai 这样的名字") from error
