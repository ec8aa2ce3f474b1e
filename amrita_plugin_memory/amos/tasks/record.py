"""A task as its file holds it, and how it moves between states. Pure: values in, values out.

The first fourteen keys are the reference implementation's and are always written; it keeps the others untouched.
Times are ISO-8601 UTC as everywhere in a root; ``timeout`` is in milliseconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias, cast

from amrita_plugin_memory.kernel.clock import iso_seconds, parse_iso
from amrita_plugin_memory.kernel.errors import Corrupt

Status: TypeAlias = Literal["pending", "running", "completed", "failed"]

DEFAULT_TIMEOUT: Final = 30_000
DEFAULT_ATTEMPTS: Final = 3
FIRST_WAIT: Final = 1.0  # seconds before the second attempt; doubled for each further one
LONGEST_WAIT: Final = 300.0
MAX_RESULT: Final = 64 * 1024  # characters of JSON
MAX_ERROR: Final = 2_000

_REFERENCE_KEYS: Final = (
    "task_id", "type", "payload", "priority", "status", "created_at", "started_at", "completed_at", "attempts",
    "max_attempts", "timeout", "worker_id", "result", "error",
)  # fmt: skip
_OUR_KEYS: Final = ("run_at", "lease_until", "owner", "cancel_requested", "retry_wait", "queued_ns")


@dataclass(frozen=True, slots=True)
class Task:
    """One task. ``owner`` is the process that runs it, ``lease_until`` how long it may stay silent."""

    task_id: str
    type: str
    payload: dict[str, Any] = field(default_factory=dict[str, Any])
    priority: float = 1
    status: Status = "pending"
    created_at: str = ""
    started_at: str | None = None
    completed_at: str | None = None
    attempts: int = 0
    max_attempts: int = DEFAULT_ATTEMPTS
    timeout: float = DEFAULT_TIMEOUT
    worker_id: str | None = None
    result: Any = None
    error: str | None = None
    run_at: str | None = None
    lease_until: str | None = None
    owner: dict[str, Any] | None = None
    cancel_requested: bool = False
    retry_wait: float = FIRST_WAIT
    queued_ns: int = 0
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def order(self) -> tuple[float, str, int, str]:
        """Sort key: the highest priority first, then the oldest."""
        return (-self.priority, self.created_at, self.queued_ns, self.task_id)


def decode(text: str, task_id: str) -> Task:
    """Read a task file; what is missing or of a wrong type gets the protocol's default.

    Raises:
        Corrupt: no JSON object, or one without a type.

    """
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Corrupt("任务文件不是有效的 JSON，已隔离") from error
    fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    if not isinstance(fields.get("type"), str):
        raise Corrupt("任务文件缺少任务类型，已隔离")
    known: dict[str, Any] = {
        key: fields.get(key) for key in (*_REFERENCE_KEYS, *_OUR_KEYS) if _fits(key, fields.get(key))
    }
    extra = {key: value for key, value in fields.items() if key not in _REFERENCE_KEYS and key not in _OUR_KEYS}
    known.update(task_id=task_id, extra=extra)
    return Task(**known)


def encode(task: Task) -> str:
    """The JSON text of a task file, reference keys first."""
    fields = {key: getattr(task, key) for key in (*_REFERENCE_KEYS, *_OUR_KEYS)}
    return json.dumps({**fields, **task.extra}, indent=2, ensure_ascii=False)


_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "type": str, "payload": dict, "priority": (int, float), "status": str, "created_at": str, "started_at": str,
    "completed_at": str, "attempts": int, "max_attempts": int, "timeout": (int, float), "worker_id": str,
    "error": str, "run_at": str, "lease_until": str, "owner": dict, "cancel_requested": bool,
    "retry_wait": (int, float), "queued_ns": int,
}  # fmt: skip


def _fits(key: str, value: object) -> bool:
    return key == "result" or isinstance(value, _KINDS.get(key, ()))


def is_due(task: Task, now: datetime) -> bool:
    """True when its time has come; an unreadable ``run_at`` counts as now."""
    moment = parse_iso(task.run_at) if task.run_at else None
    return moment is None or moment <= now


def claimed(task: Task, now: datetime, *, worker: str, owner: dict[str, Any], lease: float) -> Task:
    """The task in the hands of a worker, one attempt older."""
    return replace(
        task,
        status="running",
        started_at=iso_seconds(now),
        attempts=task.attempts + 1,
        worker_id=worker,
        owner=owner,
        lease_until=(now + timedelta(seconds=lease)).isoformat(),
    )


def renewed(task: Task, now: datetime, lease: float) -> Task:
    """The same claim, good for ``lease`` seconds from now."""
    return replace(task, lease_until=(now + timedelta(seconds=lease)).isoformat())


def _freed(task: Task, status: Status) -> Task:
    return replace(task, status=status, lease_until=None, owner=None, cancel_requested=False)


def completed(task: Task, now: datetime, result: object) -> Task:
    """Done. A result that is no JSON, or too long, is kept as its shortened ``repr``: the work is not done twice."""
    done = _freed(task, "completed")
    return replace(done, completed_at=iso_seconds(now), result=storable(result), error=None)


def failed(task: Task, now: datetime, error: str) -> Task:
    """Given up."""
    return replace(_freed(task, "failed"), completed_at=iso_seconds(now), result=None, error=error[:MAX_ERROR])


def returned(task: Task) -> Task:
    """Back in the queue as if it had not been touched, as when its manager is stopped."""
    return replace(_freed(task, "pending"), started_at=None, worker_id=None, attempts=max(task.attempts - 1, 0))


def retried(task: Task, now: datetime, error: str) -> Task:
    """Back in the queue after ``retry_wait * 2**(attempts - 1)`` seconds, or failed when no attempt is left."""
    if task.attempts >= task.max_attempts:
        return failed(task, now, error)
    wait = min(task.retry_wait * 2 ** min(task.attempts - 1, 20), LONGEST_WAIT) if task.attempts else 0.0
    return replace(
        _freed(task, "pending"),
        started_at=None,
        worker_id=None,
        error=error[:MAX_ERROR],
        run_at=(now + timedelta(seconds=wait)).isoformat(),
    )


def storable(result: object) -> object:
    """A result as JSON can hold it."""
    try:
        text = json.dumps(result, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {"repr": repr(result)[:MAX_ERROR]}
    return result if len(text) <= MAX_RESULT else {"repr": text[:MAX_ERROR]}
