"""Verbs of the services around memory: events, tasks, access lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from amrita_plugin_memory.amos.acl import AclFile, SecurityManager
from amrita_plugin_memory.amos.events import EventBus, Listener
from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.amos.search import Search
from amrita_plugin_memory.amos.tasks import TaskManager
from amrita_plugin_memory.kernel.errors import InvalidInput

from .manifest import Manifest
from .verbs import Verbs


class ServiceVerbs(Verbs):
    """Events, tasks and access lists of a root."""

    __slots__ = ()

    @property
    def scope_name(self) -> str:
        """``actor`` or ``actor/agent``, as ``cache_version.txt`` names it."""
        return self.scope.actor if self.scope.agent is None else f"{self.scope.actor}/{self.scope.agent}"

    @property
    def manifest(self) -> Manifest:
        """Who made the root and what it needs."""
        return self.root.manifest

    @property
    def event_bus(self) -> EventBus:
        """The events of the root."""
        return self.root.events

    @property
    def task_manager(self) -> TaskManager:
        """The tasks of the root."""
        return self.root.tasks

    @property
    def security_manager(self) -> SecurityManager:
        """The access lists of the root."""
        return self.root.guard

    @property
    def searcher(self) -> Search:
        """The full-text search of the root; it asks no access list."""
        return self.root.search

    # -- events ---------------------------------------------------------------------------------------------------

    def on(self, event: str, callback: Listener) -> Callable[[], None]:
        """Listen to an event of this root, whoever caused it; the function that ends it.

        ``callback(payload)`` or ``callback(payload, meta)``, plain or async; the verb that causes the event returns
        when the callback has.
        """
        return self.root.events.subscribe(event, callback)

    def once(self, event: str, callback: Listener) -> Callable[[], None]:
        """Listen to the next event of this name only."""
        return self.root.events.once(event, callback)

    def off(self, event: str, callback: Listener | None = None) -> None:
        """Stop one listener of an event, or all of them."""
        self.root.events.off(event, callback)

    async def emit(self, event: str, payload: Mapping[str, Any] | None = None) -> None:
        """Publish an event of the program's own; returns when every listener has had it."""
        if not event.strip():
            raise InvalidInput("事件名不能为空")
        await self._emit(event, payload)

    # -- tasks ----------------------------------------------------------------------------------------------------

    async def submit_task(
        self,
        type: str,
        payload: Mapping[str, Any] | None = None,
        priority: float = 1,
        *,
        delay: float | None = None,
        run_at: datetime | None = None,
    ) -> str:
        """Queue a task for whatever handler is registered for its type; its id. A higher priority goes first.

        Raises:
            TaskError: type or payload is not usable.

        """
        await self._may("write", self._home)
        return await self.root.tasks.submit_task(type, payload, priority, delay=delay, run_at=run_at)

    # -- access ---------------------------------------------------------------------------------------------------

    async def read_acl(self) -> AclFile | None:
        """The access list of the handle's user; None when there is none."""
        await self._may("read", layout.user_acl(self.scope.actor))
        return await self.root.guard.read_user_acl(self.scope.actor)

    async def write_acl(self, acl: AclFile) -> None:
        """Replace the access list of the handle's user, who stays its owner."""
        await self.root.guard.write_user_acl(self.scope.actor, acl, by=self.scope.actor)
