"""When each target is due, as a task of the AMOS root: it survives a restart, and one process runs it once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

from amrita_plugin_memory.amos.tasks import Task, TaskManager
from amrita_plugin_memory.kernel.clock import parse_iso

TYPE: Final = "subconscious"
_RUN_TIMEOUT_MS: Final = 30 * 60 * 1000


class DueRuns:
    """One pending task a target; setting a new moment takes the old one back."""

    def __init__(self, tasks: TaskManager) -> None:
        self._tasks = tasks
        self._lock = asyncio.Lock()

    def handle(self, run: Callable[[str], Awaitable[Any]]) -> None:
        """``run(account)`` is what a due task does."""

        async def handler(task: Task) -> object:
            return await run(str(task.payload.get("target", "")))

        self._tasks.register_handler(TYPE, handler)

    async def put(self, account: str, when: datetime) -> None:
        """The target is due at ``when``, and at no other moment."""
        async with self._lock:
            await self._take_back(account)
            await self._tasks.submit_task(
                TYPE, {"target": account}, run_at=when, timeout=_RUN_TIMEOUT_MS, max_attempts=1
            )

    async def drop(self, account: str) -> None:
        """The target is idle."""
        async with self._lock:
            await self._take_back(account)

    async def pending(self) -> dict[str, datetime]:
        """When each waiting target is due; one without a readable moment counts as due since ever."""
        found: dict[str, datetime] = {}
        for task in await self._tasks.list_pending():
            if task.type == TYPE:
                moment = parse_iso(task.run_at or "") or parse_iso(task.created_at)
                if moment is not None:
                    found[str(task.payload.get("target", ""))] = moment
        return found

    async def run(self) -> int:
        """Run what is due now, once in all processes; how many."""
        return await self._tasks.run_once()

    async def recover(self) -> None:
        """Put back what a dead process left running."""
        await self._tasks.recover()

    async def _take_back(self, account: str) -> None:
        for task in await self._tasks.list_pending():
            if task.type == TYPE and str(task.payload.get("target", "")) == account:
                await self._tasks.cancel(task.task_id)
