"""Events of a root and what of them may be written down. Pure: values in, values out.

Names are camelCase as in the Node.js edition; ``turn_added`` and ``tool_executed`` keep the form the reference
implementation gave them. The protocol's table of events writes the others with underscores too: `canonical` knows both.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENTS: Final = frozenset(
    (
        "turn_added", "turnDeleted", "turnEdited", "soulReplaced", "profileReplaced", "profileAppended",
        "profileFactRemoved", "summaryReplaced", "summaryPointAppended", "compressed", "workflowAdded",
        "workflowUpdated", "workflowDeleted", "knowledgeAdded", "knowledgeUpdated", "knowledgeDeleted",
        "assetCreated", "assetUpdated", "assetDeleted", "toolCompiled", "toolUpdated", "toolDeleted", "tool_executed",
        "tagAdded", "tagRemoved", "taskSubmitted", "taskCompleted", "taskFailed", "bundleExported", "bundleImported",
    )
)  # fmt: skip
_ALIASES: Final = {re.sub("[A-Z]", lambda sign: f"_{sign[0].lower()}", name): name for name in EVENTS}
LOGGED: Final = frozenset(
    (
        "sessionId", "session_id", "actor", "agent", "name", "domain", "entity", "uri", "assetType", "asset_type",
        "workflow", "tool", "toolName", "relPath", "path", "soft", "mode", "version", "turnId", "turn_id", "taskId",
        "task_id", "type", "status", "attempts", "count", "size", "ok", "durationMs", "duration_ms", "compressed",
        "total_turns", "archived_turns", "kept_turns", "summary_truncated", "archive_path", "scope", "kind", "source",
        "error_type", "files", "added", "replaced", "kept",
    )
)  # fmt: skip
MAX_VALUE: Final = 200


def canonical(event: str) -> str:
    """The name an event is published under: ``workflow_updated`` is ``workflowUpdated``; an unknown name stays."""
    return _ALIASES.get(event, event)


def record(event: str, payload: object, ts: str) -> dict[str, object]:
    """The line of the log: ``ts`` and ``event``, then ids, names and sizes of the payload flattened behind them.

    Any other key is a content until proven otherwise: of a text only its length is kept, of anything else nothing.
    """
    line: dict[str, object] = {"ts": ts, "event": event}
    if not isinstance(payload, dict):
        return line if payload is None else line | {"payload": _shape(payload)}
    return line | {
        key: value for key, value in _kept(cast("dict[object, object]", payload)) if key not in ("ts", "event")
    }


def encode(line: Mapping[str, object]) -> str:
    """One JSON line; signs that some readers take for line ends are escaped."""
    text = json.dumps(line, ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def _kept(payload: dict[object, object]) -> list[tuple[str, object]]:
    kept: list[tuple[str, object]] = []
    for key, value in payload.items():
        name = str(key)[:64]
        if value is None or isinstance(value, bool | int | float):
            kept.append((name, value))
        elif isinstance(value, str):
            kept.append((name, value[:MAX_VALUE]) if name in LOGGED else (f"{name}Length", len(value)))
    return kept


def _shape(payload: object) -> object:
    return payload if isinstance(payload, bool | int | float) else type(payload).__name__
