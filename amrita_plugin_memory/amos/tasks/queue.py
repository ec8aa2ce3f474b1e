"""The task files of a root: states are folders, moving is renaming. Synchronous; called in worker threads.

A task is claimed by renaming its file from ``pending/`` to ``running/``: of several managers exactly one succeeds.
Every other change of a task that somebody may hold is made under one lock and only by its holder, known by
``worker_id`` and ``attempts``; whoever lost the claim finds that out and changes nothing.
"""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from amrita_plugin_memory.amos.ground import holders, layout
from amrita_plugin_memory.kernel.clock import parse_iso
from amrita_plugin_memory.kernel.errors import Corrupt, InvalidInput

from . import record

if TYPE_CHECKING:
    from datetime import datetime

    from amrita_plugin_memory.amos.ground import FileRoot, PathLock

    from .record import Task

QUARANTINE: Final = layout.TASKS / "corrupt"
UNLEASED: Final = 30.0  # seconds a running task may lack a lease: between its claim and its first record
_log = logging.getLogger("amrita_memory.amos")


class Queue:
    """Tasks of one root, as files."""

    def __init__(self, files: FileRoot) -> None:
        self._files = files

    def lock(self) -> PathLock:
        """The one lock for every change of tasks that somebody may hold."""
        return self._files.lock(layout.TASKS / "tasks")

    def add(self, task: Task) -> None:
        """Store a new task."""
        self._write(task)

    def find(self, task_id: str) -> Task | None:
        """A task in whatever state; None when there is none."""
        for _ in range(2):  # it may move between two looks
            for status in layout.TASK_STATES:
                task = self.read(status, task_id)
                if task is not None:
                    return task
        return None

    def ids(self, status: str) -> list[str]:
        """Ids of the tasks in a state."""
        names = self._files.names(layout.TASKS / status)
        return [name[5:-5] for name in names if name.startswith("task_") and name.endswith(".json")]

    def read(self, status: str, task_id: str) -> Task | None:
        """One task as the folder of ``status`` holds it; a file that is no task is put aside and blocks nobody.

        ``Task.status`` is what the file says: it runs ahead of its folder for the moment of a move.
        """
        try:
            path = layout.task(status, task_id)
        except InvalidInput:
            return None
        text = self._files.read_text(path)
        if text is None:
            return None
        try:
            return record.decode(text, task_id)
        except Corrupt as error:
            _log.warning("task file %s put aside: %s", path, error)
            self._files.move(path, QUARANTINE / path.name)
            return None

    def list(self, status: str) -> list[Task]:
        """The readable tasks of a state, in the order of their work."""
        found = (self.read(status, task_id) for task_id in self.ids(status))
        return sorted((task for task in found if task is not None), key=lambda task: task.order)

    def claim(self, task: Task, now: datetime, *, worker: str, lease: float) -> Task | None:
        """Take a pending task; None when another manager was faster."""
        source, target = layout.task("pending", task.task_id), layout.task("running", task.task_id)
        try:
            if self._files.exists(target) or not self._files.move(source, target):
                return None
        except OSError:
            return None
        mine = record.claimed(task, now, worker=worker, owner=_owner(), lease=lease)
        self._write(mine)
        return mine

    def renew(self, task: Task, now: datetime, lease: float) -> Task | None:
        """Say that the task is still being worked on; None when it is no longer ours."""
        with self.lock():
            stored = self._held(task)
            if stored is None:
                return None
            renewed = record.renewed(stored, now, lease)
            self._write(renewed)
            return renewed

    def settle(self, task: Task, outcome: Task) -> bool:
        """Write the outcome of a task we ran and move it there; False when it is no longer ours."""
        with self.lock():
            if self._held(task) is None:
                return False
            self._move("running", outcome)
            return True

    def cancel(self, task_id: str, now: datetime) -> Task | None:
        """Fail a pending task, or ask the holder of a running one to stop; None when it is neither."""
        with self.lock():
            task = self.read("pending", task_id)
            if task is not None and self._files.move(layout.task("pending", task_id), layout.task("failed", task_id)):
                gone = record.failed(task, now, "已取消")
                self._write(gone)
                return gone
            task = self.read("running", task_id)
            if task is None:
                return None
            asked = replace(task, cancel_requested=True)
            self._write(asked)
            return asked

    def recover(self, now: datetime) -> list[Task]:
        """Put back what dead or silent holders left in ``running/``; failed when no attempt is left."""
        with self.lock():
            orphans = [task for task in self.list("running") if self.is_orphan(task, now)]
            return [self._move("running", _recovered(task, now)) for task in orphans]

    def is_orphan(self, task: Task, now: datetime) -> bool:
        """True when nobody works on a running task any more."""
        if task.status in ("completed", "failed"):  # its holder died while moving it
            return True
        owner = task.owner or {}
        here = holders.Holder.current()
        if owner.get("host") == here.host and isinstance(owner.get("pid"), int):
            pid = int(owner["pid"])
            if not holders.is_alive(pid) or owner.get("start") not in (None, holders.started_at(pid)):
                return True
        until = parse_iso(task.lease_until) if task.lease_until else None
        if until is not None:
            return until < now
        stamp = self._files.path(layout.task("running", task.task_id)).lstat()
        return time.time() - max(stamp.st_mtime, stamp.st_ctime) > UNLEASED

    def prune(self, keep: int) -> int:
        """Delete the oldest finished tasks beyond ``keep`` of each kind; how many."""
        count = 0
        for status in ("completed", "failed"):
            paths = [layout.task(status, task_id) for task_id in self.ids(status)]
            if len(paths) <= keep:
                continue
            stamps = {path: self._files.stamp(path) for path in paths}
            paths.sort(key=lambda path: stamp.mtime_ns if (stamp := stamps[path]) else 0)
            count += sum(self._files.delete(path) for path in paths[: len(paths) - keep])
        return count

    def _held(self, task: Task) -> Task | None:
        stored = self.read("running", task.task_id)
        same = stored is not None and (stored.worker_id, stored.attempts) == (task.worker_id, task.attempts)
        return stored if same else None

    def _move(self, status: str, task: Task) -> Task:
        self._write(task, at=status)
        self._files.move(layout.task(status, task.task_id), layout.task(task.status, task.task_id))
        return task

    def _write(self, task: Task, *, at: str | None = None) -> None:
        self._files.write_text(layout.task(at or task.status, task.task_id), record.encode(task))


def _recovered(task: Task, now: datetime) -> Task:
    return record.retried(task, now, "执行者已退出，任务中断") if task.status == "running" else task


def new_id() -> str:
    """Sixteen hexadecimal digits."""
    return secrets.token_hex(8)


def new_worker() -> str:
    """The name of a manager."""
    return f"worker_{secrets.token_hex(4)}"


def _owner() -> dict[str, Any]:
    here = holders.Holder.current()
    return {"pid": here.pid, "host": here.host, "start": here.start}
