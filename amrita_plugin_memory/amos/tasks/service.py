"""The task scheduler of a root: priority, time limits, retries, leases; any number of managers share one root."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from amrita_plugin_memory.amos.errors import TaskError
from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.kernel.clock import Clock, SystemClock, iso_seconds

from . import record, work
from .queue import Queue, new_id, new_worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amrita_plugin_memory.amos.ground import FileRoot

    from .record import Task
    from .work import Handler

LEASE: Final = 60.0  # seconds a holder may stay silent; it speaks up three times as often
_log = logging.getLogger("amrita_memory.amos")


class Publish(Protocol):
    """Where a task tells what became of it."""

    async def __call__(self, event: str, payload: Mapping[str, Any], /) -> None:
        """Deliver one event."""
        ...


@dataclass(frozen=True, slots=True)
class TaskManagerOptions:
    """``poll_interval_ms``: how often a started loop looks for work nobody told it of; ``max_workers``: at once."""

    poll_interval_ms: int = 500
    max_workers: int = 4
    lease: float = LEASE
    keep_finished: int = 1_000


@dataclass(slots=True)
class TaskManager:
    """Submits, runs, cancels and recovers the tasks of one root."""

    files: FileRoot
    options: TaskManagerOptions = field(default_factory=TaskManagerOptions)
    clock: Clock = field(default_factory=SystemClock)
    publish: Publish | None = None
    worker_id: str = field(default_factory=new_worker)
    _queue: Queue = field(init=False)
    _handlers: dict[str, Handler] = field(default_factory=dict[str, "Handler"], init=False)
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]], init=False)
    _loop: asyncio.Task[None] | None = field(default=None, init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _tended_at: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.options.max_workers < 1:
            raise TaskError("max_workers 至少为 1")
        self._queue = Queue(self.files)

    # -- for those who have work to be done -----------------------------------------------------------------------

    def register_handler(self, type_name: str, handler: Handler) -> None:
        """Say what runs tasks of a type: a coroutine function, or a plain one, which gets a thread of its own."""
        self._handlers[type_name] = handler
        self._news.set()

    async def submit_task(  # noqa: PLR0913 - each is a field of the task
        self,
        type_name: str,
        payload: Mapping[str, Any] | None = None,
        priority: float = 1,
        *,
        delay: float | None = None,
        run_at: datetime | None = None,
        timeout: float = record.DEFAULT_TIMEOUT,  # noqa: ASYNC109 - a field of the task, not of this call
        max_attempts: int = record.DEFAULT_ATTEMPTS,
        retry_wait: float = record.FIRST_WAIT,
        actor: str | None = None,
    ) -> str:
        """Queue a task; its id. A higher ``priority`` goes first.

        Args:
            type_name: which handler runs it; without one it waits.
            payload: JSON for the handler.
            priority: any number.
            delay: seconds from now before which it is not run (or give ``run_at``).
            run_at: the moment before which it is not run; a naive one is local time.
            timeout: milliseconds one attempt may take; 0 is no limit.
            max_attempts: how often it is tried in all.
            retry_wait: seconds before the second attempt, doubled for each further one.
            actor: the user who gives it, in whose package it travels; a key the reference implementation keeps.

        Raises:
            TaskError: something of that is not usable; nothing was queued.

        """
        now = self.clock.now()
        due = run_at.astimezone(now.tzinfo) if run_at else now + timedelta(seconds=delay) if delay else None
        task = record.Task(
            task_id=new_id(),
            type=_checked_type(type_name),
            payload=_checked_payload(payload),
            priority=priority,
            created_at=iso_seconds(now),
            max_attempts=max(1, int(max_attempts)),
            timeout=timeout,
            run_at=due.isoformat() if due else None,
            retry_wait=retry_wait,
            queued_ns=time.time_ns(),
            extra={} if actor is None else {"actor": actor},
        )
        await asyncio.to_thread(self._queue.add, task)
        self._news.set()
        await self._tell("taskSubmitted", task)
        return task.task_id

    async def cancel(self, task_id: str) -> bool:
        """Stop a task, wherever it runs; False when it is finished or unknown. A thread can only be left behind."""
        task = await asyncio.to_thread(self._queue.cancel, task_id, self.clock.now())
        mine = self._running.get(task_id)
        if task is not None and mine is not None:
            mine.cancel()
            await asyncio.wait([mine])
        return task is not None

    async def get_task(self, task_id: str) -> Task | None:
        """One task, in whatever state."""
        return await asyncio.to_thread(self._queue.find, task_id)

    async def list_tasks(self, status: str = "pending") -> list[Task]:
        """The tasks of a state, in the order of their work."""
        if status not in layout.TASK_STATES:
            raise TaskError(f"任务状态只能是 {' '.join(layout.TASK_STATES)}")
        return await asyncio.to_thread(self._queue.list, status)

    async def list_pending(self) -> list[Task]:
        """The waiting tasks, the highest priority first, then the oldest."""
        return await self.list_tasks("pending")

    async def counts(self) -> dict[str, int]:
        """How many tasks are in each state."""
        return await asyncio.to_thread(lambda: {status: len(self._queue.ids(status)) for status in layout.TASK_STATES})

    # -- work -----------------------------------------------------------------------------------------------------

    async def run_once(self) -> int:
        """Recover what was left behind, then run up to ``max_workers`` due tasks at the same time; how many ran."""
        await self._tend()
        started = await self._start_due(self.options.max_workers - len(self._running))
        if started:
            await asyncio.wait(started)
        return len(started)

    async def recover(self) -> int:
        """Put back what dead managers left in ``running/``; how many tasks."""
        return len(await asyncio.to_thread(self._queue.recover, self.clock.now()))

    def start(self) -> None:
        """Work in the background until `stop`; a second call does nothing."""
        if self._loop is None or self._loop.done():
            self._loop = asyncio.get_running_loop().create_task(self._work(), name="amos-tasks")

    async def stop(self, *, grace: float = 5.0) -> None:
        """Take no new task, wait ``grace`` seconds for those at work, then cancel them: they go back to the queue."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop])
            self._loop = None
        running = list(self._running.values())
        if running:
            _, late = await asyncio.wait(running, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def _work(self) -> None:
        while True:
            self._news.clear()
            try:
                await self._tend()
                await self._start_due(self.options.max_workers - len(self._running))
            except Exception:  # noqa: BLE001 - the border of the job: the loop outlives a full disk
                _log.exception("task loop failed; trying again")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.options.poll_interval_ms / 1000):
                    await self._news.wait()

    async def _tend(self) -> None:
        now = self.clock.monotonic()
        if self._tended_at is not None and now - self._tended_at < self.options.lease / 3:
            return
        self._tended_at = now
        await self.recover()
        await asyncio.to_thread(self._queue.prune, self.options.keep_finished)

    async def _start_due(self, free: int) -> list[asyncio.Task[None]]:
        started: list[asyncio.Task[None]] = []
        if free <= 0 or not self._handlers:
            return started
        now = self.clock.now()
        for task in await asyncio.to_thread(self._queue.list, "pending"):
            if len(started) >= free:
                break
            handler = self._handlers.get(task.type)
            if handler is None or not record.is_due(task, now):
                continue
            claimed = await self._claim(task)
            if claimed is not None:
                job = asyncio.get_running_loop().create_task(self._run(claimed, handler))
                self._running[claimed.task_id] = job
                job.add_done_callback(lambda _, task_id=claimed.task_id: self._ended(task_id))
                started.append(job)
        return started

    async def _claim(self, task: Task) -> Task | None:
        claiming = asyncio.to_thread(
            lambda: self._queue.claim(task, self.clock.now(), worker=self.worker_id, lease=self.options.lease)
        )
        return await asyncio.shield(claiming)

    def _ended(self, task_id: str) -> None:
        self._running.pop(task_id, None)
        self._news.set()

    async def _run(self, task: Task, handler: Handler) -> None:
        beat = asyncio.get_running_loop().create_task(self._keep_alive(task))
        try:
            outcome = await self._outcome(task, handler)
        except asyncio.CancelledError:
            outcome = await self._stopped(task)
        finally:
            beat.cancel()
        settled = await asyncio.shield(asyncio.to_thread(self._queue.settle, task, outcome))
        if not settled:
            _log.warning("task %s ran to its end after its lease was lost; its outcome is dropped", task.task_id)
        elif outcome.status != "pending":
            await self._tell("taskCompleted" if outcome.status == "completed" else "taskFailed", outcome)

    async def _outcome(self, task: Task, handler: Handler) -> Task:
        try:
            result = await work.call(handler, task)
        except work.Abandoned:
            return record.failed(task, self.clock.now(), f"超过 {task.timeout:g} 毫秒未完成，线程无法中止，不再重试")
        except TimeoutError:
            return record.retried(task, self.clock.now(), f"超过 {task.timeout:g} 毫秒未完成")
        except Exception as error:  # noqa: BLE001 - the border of the job: whatever a handler raises is its outcome
            _log.info("task %s of type %s failed: %s", task.task_id, task.type, type(error).__name__)
            return record.retried(task, self.clock.now(), str(error) or type(error).__name__)
        return record.completed(task, self.clock.now(), result)

    async def _stopped(self, task: Task) -> Task:
        stored = await asyncio.shield(asyncio.to_thread(self._queue.read, "running", task.task_id))
        if stored is not None and stored.cancel_requested:
            return record.failed(task, self.clock.now(), "已取消")
        return record.returned(task)

    async def _keep_alive(self, task: Task) -> None:
        while True:
            await asyncio.sleep(self.options.lease / 3)
            stored = await asyncio.to_thread(self._queue.renew, task, self.clock.now(), self.options.lease)
            job = self._running.get(task.task_id)
            if job is not None and (stored is None or stored.cancel_requested):
                job.cancel()
                return

    async def _tell(self, event: str, task: Task) -> None:
        if self.publish is not None:
            facts = {"taskId": task.task_id, "type": task.type, "status": task.status, "attempts": task.attempts}
            await self.publish(event, facts)


def _checked_type(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise TaskError("任务类型不能为空")
    return name


def _checked_payload(payload: Mapping[str, Any] | None) -> dict[str, Any]:
    data = dict(payload or {})
    stored = record.storable(data)
    if stored is not data:
        raise TaskError("任务参数必须是不太大的 JSON 对象")
    return data
