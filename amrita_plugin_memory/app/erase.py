"""Forgetting a person: everything that is kept of one account is deleted, and looked for again afterwards."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from amrita_plugin_memory.amos import AMOS
from amrita_plugin_memory.kernel.errors import Forbidden, StoreUnavailable
from amrita_plugin_memory.kernel.scope import Caller
from amrita_plugin_memory.subconscious.journal import Journal
from amrita_plugin_memory.subconscious.ports import StateStore
from amrita_plugin_memory.subconscious.service import LEGACY_UID
from amrita_plugin_memory.subconscious.takeover import OLD_PROFILE

from .l3 import L3, ROOT, RUNS, SYSTEM, Below


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is kept of one person: facts, characters of the memo, days of chat, a portrait or not, records of runs."""

    facts: int = 0
    memo: int = 0
    days: int = 0
    profile: bool = False
    runs: int = 0
    state: bool = False

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return self != Holdings()

    def code(self, caller: Caller) -> str:
        """Four signs that stand for the facts and the memo of this person; others when any of these came or went.

        What the bot does by itself meanwhile, such as a run in the silence, does not make a person begin again.
        """
        return hashlib.sha256(f"{caller.user.key()} {self.facts} {self.memo}".encode()).hexdigest()[:4]


class Erasure:
    """For the person alone, in a private chat; what belongs to a group is the group's."""

    def __init__(self, below: Below, *, states: StateStore | None, l3: L3 | None) -> None:
        self._facts = below.facts
        self._memo = below.memo
        self._journal = Journal(below.data_dir / RUNS)
        self._root = below.data_dir / ROOT
        self._old_profile = below.data_dir / OLD_PROFILE
        self._file = below.file
        self._states = states
        self._l3 = l3

    async def survey(self, caller: Caller) -> Holdings:
        """What there is of this person now.

        Raises:
            Forbidden: asked in a group.
            StoreUnavailable: a store does not answer.

        """
        _in_private(caller)
        key, account = caller.user.key(), caller.user.account
        page = await self._facts.list(caller, scope="user", limit=1)
        days, profile = 0, False
        async with self._opened() as amos:
            if amos is not None:
                handle = amos.handle.at(key)
                days, profile = len(await handle.list_sessions()), bool(await handle.get_profile())
        if self._is_first(account):
            profile = profile or await asyncio.to_thread(self._old_profile.is_file)
        return Holdings(
            facts=page.total,
            memo=len(await self._memo.read(caller)),
            days=days,
            profile=profile,
            runs=len(await asyncio.to_thread(self._journal.list, account)),
            state=bool([name for name in self._state_names(caller) if self._states and await self._states.load(name)]),
        )

    async def erase(self, caller: Caller) -> Holdings:
        """Delete all of it, look again, and say what it was.

        Raises:
            Forbidden: asked in a group.
            StoreUnavailable: something could not be deleted; asking again goes on with the rest.

        """
        held = await self.survey(caller)
        key, account = caller.user.key(), caller.user.account
        if self._l3 is not None:
            await self._l3.service.forget(account)
        await self._facts.forget_all(caller, scope="user")
        await self._memo.erase(caller)
        async with self._opened() as amos:
            if amos is not None:
                await amos.forget_user(key)
        await asyncio.to_thread(self._journal.erase, account)
        if self._is_first(account):
            await asyncio.to_thread(self._old_profile.unlink, missing_ok=True)
        for name in self._state_names(caller):
            if self._states is not None and await self._states.load(name):
                await self._states.change(name, lambda _: {})
        if await self.survey(caller):
            raise StoreUnavailable("没有全部删掉，请再发送一次；一直这样请告诉机器人的主人")
        return held

    def _is_first(self, account: str) -> bool:
        """Whether what the published plugin kept without a name, for its one target, is this person's."""
        return account == next(iter(self._file().subconscious.targets), None)

    def _state_names(self, caller: Caller) -> list[str]:
        return [caller.user.key(), *([LEGACY_UID] if self._is_first(caller.user.account) else [])]

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[AMOS | None]:
        """The root: the one that L3 has open, else, when there is one on the disk, opened for this."""
        if self._l3 is not None or not await asyncio.to_thread(self._root.is_dir):
            yield self._l3.amos if self._l3 else None
            return
        async with await AMOS.create(root_dir=self._root, actor=SYSTEM) as amos:
            yield amos


def _in_private(caller: Caller) -> None:
    if caller.group is not None:
        raise Forbidden("请私聊我发送 /memory 忘掉我，这里是群")
