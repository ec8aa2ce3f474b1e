"""What every group of verbs stands on: the scope it is for, the permission it needs, the event it causes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from amrita_plugin_memory.amos.acl import Action
from amrita_plugin_memory.amos.errors import ACLDeniedError
from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.amos.search import SearchAllHit, SearchHit
from amrita_plugin_memory.amos.search.hits import MAX_TOP_K
from amrita_plugin_memory.kernel.errors import InvalidInput, LimitReached, shorten
from amrita_plugin_memory.kernel.scope import Scope

if TYPE_CHECKING:
    from .root import Root

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")
_Hit = TypeVar("_Hit", SearchHit, SearchAllHit)
_MORE: Final = 8  # times as many are asked for when some may not be read
MAX_CONTENT: Final = 1_000_000  # characters of a soul, profile, workflow or knowledge entry


@dataclass(frozen=True, slots=True)
class Verbs:
    """A scope of a root: immutable, so that calls of different users never meet."""

    root: Root
    scope: Scope

    @property
    def _home(self) -> PurePosixPath:
        return layout.user_dir(self.scope.actor)

    def _owner(self, shared: bool) -> PurePosixPath:
        return layout.SHARED if shared else self._home

    def _session(self, session_id: str | None) -> Scope:
        """The scope with another session; None is the session of the handle."""
        if session_id is None:
            return self.scope
        return layout.make_scope(self.scope.actor, self.scope.agent, session_id)

    async def _may(self, action: Action, path: PurePosixPath) -> None:
        """Ask the access list about a path of the root.

        Raises:
            ACLDeniedError: it is not allowed.

        """
        await self.root.guard.assert_permission(str(path), action, self.scope.actor)

    def _can(self, action: Action, path: PurePosixPath | str) -> bool:
        """The answer of the access list about a path of the root; blocks."""
        return self.root.guard.check(str(path), action, self.scope.actor)

    async def _do(
        self, action: Action, path: PurePosixPath, work: Callable[_Args, _Result], *args: _Args.args, **kw: _Args.kwargs
    ) -> _Result:
        """`_may`, then ``work(…)``, in one thread.

        Raises:
            ACLDeniedError: it is not allowed, and nothing was done.

        """

        def permitted() -> _Result:
            if not self._can(action, path):
                raise ACLDeniedError(f"没有权限访问 {shorten(str(path), 60)}，请让其所有者授权")
            return work(*args, **kw)

        return await asyncio.to_thread(permitted)

    async def _hits(self, ask: Callable[[int], Awaitable[list[_Hit]]], top_k: int) -> list[_Hit]:
        """Hits that may be read. Where others stood among the best, more are asked for to take their place."""
        wish = top_k
        while True:
            found = await ask(wish)
            allowed = await asyncio.to_thread(self._seen, found)
            if len(allowed) >= top_k or len(found) < wish or wish >= MAX_TOP_K:
                return allowed[:top_k]
            wish = min(_MORE * wish, MAX_TOP_K)

    def _seen(self, found: list[_Hit]) -> list[_Hit]:
        allowed = self.root.guard.check_all([hit.path for hit in found], "read", self.scope.actor)
        return [hit for hit, may in zip(found, allowed, strict=True) if may]

    async def _emit(self, event: str, payload: Mapping[str, Any] | None = None) -> None:
        who = {"actor": self.scope.actor} | ({"agent": self.scope.agent} if self.scope.agent else {})
        await self.root.events.publish(event, {**(payload or {}), **who})


def checked(content: object, what: str) -> str:
    """A text that is stored whole.

    Raises:
        InvalidInput: it is no text.
        LimitReached: it is longer than `MAX_CONTENT`.

    """
    if not isinstance(content, str):
        raise InvalidInput(f"{what}必须是文字")
    if len(content) > MAX_CONTENT:
        raise LimitReached(f"{what}最多 {MAX_CONTENT} 字，这份有 {len(content)} 字，请分开保存")
    return content


def with_session(usage: str, *values: str | None) -> tuple[str | None, ...]:
    """Session and texts of a call that may leave out the session: ``(session, a, b)`` or ``(a, b)``.

    Values that are missing stand at the end as None; when one is, the rest moves up and the session is None.

    Raises:
        InvalidInput: more than the session is missing.

    """
    if values[-1] is not None:
        return values
    if any(value is None for value in values[:-1]):
        raise InvalidInput(f"参数不够，用法：{usage}")
    return (None, *values[:-1])
