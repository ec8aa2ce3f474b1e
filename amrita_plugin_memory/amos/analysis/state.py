"""Where the last analysis of a session ended: ``.analysis_state.json`` beside its messages.

The reference implementation keeps the place as a message index, which is wrong as soon as the session is compressed; we
keep the ids of the last turns as well, and find the place by the newest of them that is still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.memory.sessions.turns import Turn
from amrita_plugin_memory.kernel.errors import Corrupt
from amrita_plugin_memory.kernel.scope import Scope

from .rules import SessionAnalysis, stored_insight

_KEPT: Final = 64  # ids of turns: more than a compression leaves in place


def place(scope: Scope) -> PurePosixPath:
    """The state file of a session."""
    return layout.session_dir(scope) / ".analysis_state.json"


def load(files: FileRoot, scope: Scope) -> tuple[list[str], SessionAnalysis | None]:
    """Ids of the last analysed turns and the insight so far; nothing when there is none, or none that can be read."""
    try:
        data = files.read_object(place(scope)) or {}
    except Corrupt:
        return [], None
    ids = data.get("lastTurnIds")
    insight = data.get("previousInsight")
    known = [one for one in ids if isinstance(one, str)] if isinstance(ids, list) else []  # pyright: ignore[reportUnknownVariableType]
    return known, stored_insight(insight if isinstance(insight, dict) else None)  # pyright: ignore[reportUnknownArgumentType]


def save(files: FileRoot, scope: Scope, turns: Sequence[Turn], *, insight: SessionAnalysis, now: str) -> None:
    """Remember that everything up to the last of ``turns`` has been analysed."""
    state: dict[str, Any] = {
        "lastAnalyzedTurn": sum(len(turn.lines) for turn in turns),
        "previousInsight": insight.to_dict(),
        "updatedAt": now,
        "lastTurnIds": [turn.id for turn in turns[-_KEPT:]],
    }
    with files.lock(place(scope)):
        files.write_json(place(scope), state)


def fresh(turns: Sequence[Turn], known: Sequence[str]) -> list[Turn]:
    """The turns behind the newest known one; all of them when none is known any more."""
    seen = set(known)
    last = max((at for at, turn in enumerate(turns) if turn.id in seen), default=-1)
    return list(turns[last + 1 :])
