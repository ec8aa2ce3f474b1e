"""One opened root: the services that all handles on it share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from amrita_plugin_memory.amos.acl import AclEntry, AclFile, SecurityManager
from amrita_plugin_memory.amos.bundle import PortabilityManager
from amrita_plugin_memory.amos.compression import Compression
from amrita_plugin_memory.amos.events import EventBus, EventLog
from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.memory import Index, Knowledge, Sessions, StableText, Tags, Workflows, versions
from amrita_plugin_memory.amos.monitor import Monitor
from amrita_plugin_memory.amos.prompt import PromptBuilder, ReadableText
from amrita_plugin_memory.amos.search import Search
from amrita_plugin_memory.amos.tasks import TaskManager
from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, Locked
from amrita_plugin_memory.kernel.scope import Scope

from . import manifest as manifests
from .manifest import Manifest
from .options import AMOSOptions
from .workshop import services
from .workshop.services import Workshop

log = logging.getLogger("amrita_memory.amos")

IDLE: Final = 2.0  # seconds after a change until the index journal is folded in
BREATH: Final = 20  # and at least so many times as long as the last folding took


@dataclass(frozen=True, slots=True)
class Root:
    """Services of one root. Made by `open_root`; immutable, apart from what the services remember of the disk."""

    options: AMOSOptions
    files: FileRoot
    manifest: Manifest
    index: Index
    stable: StableText
    sessions: Sessions
    workflows: Workflows
    knowledge: Knowledge
    tags: Tags
    compression: Compression
    prompt: PromptBuilder
    search: Search
    guard: SecurityManager
    events: EventBus
    tasks: TaskManager
    bundles: PortabilityManager
    monitor: Monitor
    idle: IdleFlush
    workshop: Workshop

    def changed(self, *paths: PurePosixPath | str) -> None:
        """Tell the search index which files were written, and fold the index journal in when things are quiet."""
        for path in paths:
            self.search.changed(path)
        self.idle.poke()

    async def forget_user(self, actor: str) -> bool:
        """See `AMOS.forget_user`."""
        gone = await asyncio.to_thread(self._forget_now, layout.make_scope(actor, None, "default").actor)
        await self.search.reindex()  # the index holds texts, which must go at once and not with the next search
        return gone

    def _forget_now(self, actor: str) -> bool:
        folder = layout.user_dir(actor)
        for path in self.index.entries():
            if path.startswith(f"{folder}/"):
                self.index.drop(PurePosixPath(path))
        gone = self.files.delete_tree(folder)
        self.index.flush()
        versions.forget(self.files, actor)
        return gone

    async def close(self) -> None:
        """Write what is deferred and close what is open."""
        await self.tasks.stop()
        await self.workshop.close()
        await self.idle.close()
        await self.search.close()


@dataclass(slots=True)
class IdleFlush:
    """Work for quiet moments: the index journal is folded in some seconds after a change."""

    index: Index
    clock: Clock
    _wait: float = IDLE
    _timer: asyncio.TimerHandle | None = None
    _running: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def poke(self) -> None:
        """Something may have changed; called on the event loop."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._wait, self._start)

    def spare(self, work: Callable[[], object]) -> None:
        """Do something in the background that nobody waits for; `close` does."""
        task = asyncio.get_running_loop().create_task(self._try(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _start(self) -> None:
        self._timer = None
        self.spare(self._fold)

    def _fold(self) -> None:
        begun = self.clock.monotonic()
        self.index.flush()
        self._wait = max(IDLE, BREATH * (self.clock.monotonic() - begun))

    async def _try(self, work: Callable[[], object]) -> None:
        try:
            await asyncio.to_thread(work)
        except (AmritaMemoryError, OSError) as error:
            log.warning("%s is left for later: %s", getattr(work, "__name__", "work"), type(error).__name__)

    async def close(self) -> None:
        """Fold in what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.gather(*self._running)
        await self._try(self.index.flush)


async def open_root(options: AMOSOptions, scope: Scope) -> Root:
    """Every service of a root, checked, made ready and wired.

    Raises:
        ProtocolVersionError: the root is of another version.
        Corrupt: its manifest cannot be read.

    """
    files, manifest = await asyncio.to_thread(_open_files, options, scope)
    index = Index(files, options.enable_index)
    stable, sessions = StableText(files), Sessions(files, options.max_message_chars)
    guard = SecurityManager(files, manifest.author)
    readable = ReadableText(files, guard)
    guard.around = readable.while_listed
    llm = services.device(options)
    summarize = options.summarize_fn or (llm.summarize if llm.available else None)
    events = EventBus(log=EventLog(files), clock=options.clock)
    root = Root(
        options=options,
        files=files,
        manifest=manifest,
        index=index,
        stable=stable,
        sessions=sessions,
        workflows=Workflows(files),
        knowledge=Knowledge(files),
        tags=Tags(files, index),
        compression=Compression(files, sessions, stable, summarize, options.rules(), options.clock),
        prompt=PromptBuilder(files, readable, sessions),
        search=Search(files, tags=index.tags_of, clock=options.clock),
        guard=guard,
        events=events,
        tasks=TaskManager(files, clock=options.clock, publish=events.publish),
        bundles=PortabilityManager(files, index, options.clock),
        monitor=Monitor(files, options.clock),
        idle=IdleFlush(index, options.clock),
        workshop=services.build(options, llm, files=files, manifest=manifest, sessions=sessions, guard=guard),
    )
    root.idle.spare(files.sweep)
    await _finish_import(root)
    if options.auto_grant_actor:
        await _grant(root, scope.actor)
    return root


def _open_files(options: AMOSOptions, scope: Scope) -> tuple[FileRoot, Manifest]:
    files = FileRoot.open(options.root_dir, sync=options.fsync)
    manifest = manifests.prepare(files)
    files.make_dir(layout.user_dir(scope.actor) / "agents")
    return files, manifest


async def _finish_import(root: Root) -> None:
    """Finish an import that a killed process began; one that is at work is left alone."""
    if await asyncio.to_thread(root.bundles.leftovers):
        with contextlib.suppress(Locked):
            await root.bundles.recover()


async def _grant(root: Root, actor: str) -> None:
    """An access list that allows an actor everything of its own, for an actor that has none."""
    path = layout.user_acl(actor)
    if not await asyncio.to_thread(root.files.exists, path):
        own = AclEntry("**", ("read", "write", "execute"), (actor,))
        default = {"read": ("owner",), "write": ("owner",), "execute": ("owner",)}
        await root.guard.write_user_acl(actor, AclFile(actor, (own,), default), by=actor)
