"""Verbs of the services around memory: events, tasks, packages, access lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from amrita_plugin_memory.amos.acl import AclFile, SecurityManager
from amrita_plugin_memory.amos.bundle import ImportOptions, ImportReport, PortabilityManager
from amrita_plugin_memory.amos.events import EventBus, Listener
from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.amos.monitor import Health, Monitor, MonitorSnapshot
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
        """The access lists of the root, asked for the handle's user unless another is named."""
        return self.root.guard.bound_to(self.scope.actor)

    @property
    def searcher(self) -> Search:
        """The full-text search of the root; it asks no access list."""
        return self.root.search

    @property
    def portability_manager(self) -> PortabilityManager:
        """Packages of the root; it asks no access list."""
        return self.root.bundles

    @property
    def monitor(self) -> Monitor:
        """Numbers and health of the root."""
        return self.root.monitor

    async def snapshot(self) -> MonitorSnapshot:
        """Numbers of the whole root at this moment: files, tasks, last error, highest cache version."""
        return await self.root.monitor.snapshot()

    async def health(self) -> Health:
        """What is right and what is wrong with the root."""
        return await self.root.monitor.health()

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

        It travels in the package of the handle's user, unless its payload names another ``actor``.

        Raises:
            TaskError: type or payload is not usable.

        """
        await self._may("write", self._home)
        return await self.root.tasks.submit_task(
            type, payload, priority, delay=delay, run_at=run_at, actor=self.scope.actor
        )

    # -- packages -------------------------------------------------------------------------------------------------

    async def export_agent(self, output_path: str | Path) -> str:
        """Pack what is the handle's user's, or with an agent what that agent needs, as ``.amos``; the path written.

        Nothing of other users is in it, their names neither. A user of whom nothing is kept yet gets a package as well.
        """
        await self._may("read", self._home)
        result = await self.root.bundles.export(output_path, self.scope.actor, self.scope.agent, empty_ok=True)
        await self._emit("bundleExported", {"files": result.files, "size": result.packed})
        return result.path

    async def import_bundle(self, path: str | Path, options: ImportOptions | None = None) -> ImportReport:
        """Take a ``.amos`` package in, whole or not at all, when the handle's user may write all that it changes.

        Raises:
            ACLDeniedError: the package holds what the user may not write; nothing was changed.
            BundleError: not a package, damaged, dangerous or too big; nothing was changed.

        """
        options = options or ImportOptions()
        plan = await self.root.bundles.import_bundle(path, replace(options, dry_run=True))
        for owner in {owner_of(changed) for changed in (*plan.added, *plan.replaced)}:
            await self._may("write", owner)
        return await self._take_in(path, options)

    async def _take_in(self, path: str | Path, options: ImportOptions) -> ImportReport:
        report = await self.root.bundles.import_bundle(path, options)
        if not report.dry_run:
            self.root.changed(*report.added, *report.replaced)
            await self._emit("bundleImported", {"added": len(report.added), "replaced": len(report.replaced)})
        return report

    # -- access ---------------------------------------------------------------------------------------------------

    async def read_acl(self) -> AclFile | None:
        """The access list of the handle's user; None when there is none."""
        await self._may("read", layout.user_acl(self.scope.actor))
        return await self.root.guard.read_user_acl(self.scope.actor)

    async def write_acl(self, acl: AclFile) -> None:
        """Replace the access list of the handle's user, who stays its owner."""
        await self.root.guard.write_user_acl(self.scope.actor, acl, by=self.scope.actor)


def owner_of(path: str) -> PurePosixPath:
    """The folder of the user a path belongs to, or its first folder when it is nobody's own."""
    parts = PurePosixPath(path).parts
    return PurePosixPath(*parts[: 2 if parts[0] == "users" else 1])
