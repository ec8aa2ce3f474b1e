"""Read, replace and append the memo of the chat the caller is in; and the block that goes into its prompt."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from amrita_plugin_memory.kernel.scope import Caller, UniId

from .ports import MemoRow, MemoStore, Stamp
from .rules import appended, block, checked

_KEPT: Final = 128
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Cached:
    stamp: Stamp
    content: str
    block: str


class Memo:
    """L1. In a group only the group's memo is reachable, in a private chat only the person's.

    Contents are cached and written through; a cached one is used only while the store's stamp says it is current, so
    that a row changed or deleted by another process is never served.
    """

    def __init__(self, store: MemoStore, *, limit: Callable[[], int]) -> None:
        self._store = store
        self._limit = limit
        self._cache: OrderedDict[str, _Cached] = OrderedDict()

    @property
    def limit(self) -> int:
        """The hard bound in characters (code points)."""
        return self._limit()

    @staticmethod
    def owner(caller: Caller) -> UniId:
        """Whose memo a call is about: the group's in a group, else the person's."""
        return caller.group or caller.user

    async def read(self, caller: Caller) -> str:
        """The memo of the caller's chat; "" when there is none.

        Raises:
            Forbidden: a temporary session, whose record a group can read.

        """
        if caller.overheard:
            caller.require_privacy()
        return (await self._current(self.owner(caller).key())).content

    async def block(self, owner: UniId) -> str:
        """The ``<MEMO>`` block for the prompt of this chat; "" when there is nothing to say."""
        return (await self._current(owner.key())).block

    async def replace(self, caller: Caller, content: str) -> str:
        """Store ``content`` in place of the whole memo and return it as stored.

        Raises:
            Forbidden: a group's memo, and the caller does not manage the group.
            LimitReached: too long; nothing is changed.

        """
        return await self._change(caller, lambda _: checked(content, self.limit))

    async def append(self, caller: Caller, addition: str) -> str:
        """Add one line to the memo and return the whole; the same line twice is stored once.

        Raises:
            Forbidden: a group's memo, and the caller does not manage the group.
            InvalidInput: nothing readable to add.
            LimitReached: the whole would be too long; nothing is changed.

        """
        return await self._change(caller, lambda current: appended(current, addition, self.limit))

    async def erase(self, caller: Caller) -> int:
        """Empty the memo; how many characters it had.

        Raises:
            Forbidden: a group's memo, and the caller does not manage the group.

        """
        had = len(await self.read(caller))
        if had:
            await self._change(caller, lambda _: "")
        return had

    async def _change(self, caller: Caller, edit: Callable[[str], str]) -> str:
        if caller.group is not None:
            caller.require_group_manager()
        return self._keep(await self._store.change(self.owner(caller).key(), edit)).content

    async def _current(self, key: str) -> _Cached:
        stamp = await self._store.stamp(key)
        if stamp is None:
            self._cache.pop(key, None)
            return _Cached(Stamp(0, _NEVER), "", "")
        held = self._cache.get(key)
        if held is not None and held.stamp == stamp:
            self._cache.move_to_end(key)
            return held
        row = await self._store.read(key)
        return self._keep(row) if row else _Cached(stamp, "", "")

    def _keep(self, row: MemoRow) -> _Cached:
        cached = _Cached(Stamp(row.version, row.updated_at), row.content, block(row.content))
        self._cache[row.key] = cached
        self._cache.move_to_end(row.key)
        while len(self._cache) > _KEPT:
            self._cache.popitem(last=False)
        return cached
