"""`AMOS`: the one object a program needs."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from amrita_plugin_memory.amos.bundle import ImportOptions, ImportReport
from amrita_plugin_memory.amos.ground import layout

from .handle import Handle
from .options import AMOSOptions
from .root import Root, open_root

if TYPE_CHECKING:
    _Verbs = Handle
else:
    _Verbs = object


class _OfCurrentHandle:
    """A verb of `Handle` as an attribute of `AMOS`: bound to the handle that is current when it is looked up."""

    def __init__(self, name: str, verb: Callable[..., Any] | property) -> None:
        self._name, self._verb = name, verb
        self.__doc__ = verb.__doc__

    def __get__(self, amos: AMOS | None, owner: type[AMOS]) -> Any:
        return self._verb if amos is None else getattr(amos.handle, self._name)


class AMOS(_Verbs):
    """A root with a default handle: every verb of `Handle` is a method here and means that handle.

    A call keeps the handle it was made with: `set_context` between making a call and awaiting it changes nothing.
    Programs that serve several users use `at` and leave the default alone.
    """

    def __init__(self, root: Root, handle: Handle) -> None:
        self._root: Final = root
        self._handle = handle
        self._last_flush = weakref.finalize(self, _quietly, root.index.flush)

    @classmethod
    async def create(cls, options: AMOSOptions | None = None, **settings: Any) -> Self:
        """Open a root, or make a new one: ``create(root_dir=…, actor=…)`` or ``create(AMOSOptions(…))``.

        Raises:
            InvalidInput: an unknown or unusable setting.
            InvalidName: an actor, agent or session that cannot be a path component.
            ProtocolVersionError: the root is of another version.
            Corrupt: the manifest of the root cannot be read.

        """
        options = AMOSOptions.of(options, settings)
        scope = layout.make_scope(options.actor_or_default, options.agent, options.session_id or "default")
        root = await open_root(options, scope)
        return cls(root, Handle(root, scope))

    @property
    def handle(self) -> Handle:
        """The default handle as it is now."""
        return self._handle

    def set_context(self, actor: str, agent: str | None = None, session_id: str | None = None) -> str:
        """Replace the default handle of this object; ``agent=None`` means no agent. The name of the new scope."""
        self._handle = self._handle.at(actor, agent, session_id)
        return self._handle.scope_name

    async def export_root(self, output_path: str | Path) -> str:
        """Pack the whole root, every user of it; the path written. For whoever runs the program, not for a user."""
        return (await self._root.bundles.export(output_path)).path

    async def import_bundle(self, path: str | Path, options: ImportOptions | None = None) -> ImportReport:
        """Take a ``.amos`` package in, whole or not at all. For whoever runs the program: no access list is asked.

        Raises:
            BundleError: not a package, damaged, dangerous or too big; nothing was changed.

        """
        return await self._handle._take_in(path, options or ImportOptions())  # pyright: ignore[reportPrivateUsage]

    async def forget_user(self, actor: str) -> bool:
        """Delete all that a user has here: sessions and archives, profile, soul, knowledge, assets, agents, tags.

        For whoever runs the program: no access list is asked. False when there was nothing. Packages that were
        exported before keep their copy.

        Raises:
            InvalidName: the name cannot be a user's.

        """
        return await self._root.forget_user(actor)

    async def close(self) -> None:
        """Write what is deferred, stop what runs, close what is open."""
        await self._root.close()
        self._last_flush.detach()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _quietly(flush: Callable[[], None]) -> None:
    try:
        flush()
    except Exception:  # noqa: BLE001 - a border: the interpreter is going down, and the journal keeps what was not folded
        return


for _name in dir(Handle):
    if not _name.startswith("_") and _name not in vars(AMOS):
        setattr(AMOS, _name, _OfCurrentHandle(_name, getattr(Handle, _name)))
