"""Carry out one ``/memory`` request through the services and answer with text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from amrita_plugin_memory.facts import Facts, Listed
from amrita_plugin_memory.kernel.errors import Ambiguous, AmritaMemoryError, Forbidden, NotFound, Unavailable
from amrita_plugin_memory.kernel.scope import Caller
from amrita_plugin_memory.memo import Memo
from amrita_plugin_memory.subconscious import Subconscious

from . import render
from .parse import Action, Request, parse

if TYPE_CHECKING:
    from amrita_plugin_memory.app import Erasure

SEARCH_TOP: Final = 8
STATUS_TOP: Final = 3


class Commands:
    """The ``/memory`` door. Raises nothing on purpose: an error of the tree becomes its one sentence."""

    def __init__(
        self, *, facts: Facts, memo: Memo, erasure: Erasure | None = None, subconscious: Subconscious | None = None
    ) -> None:
        self._facts = facts
        self._memo = memo
        self._erasure = erasure
        self._subconscious = subconscious
        self._actions: dict[Action, Callable[[Caller, Request], Awaitable[str]]] = {
            "status": self._status,
            "list": self._list,
            "search": self._search,
            "delete": self._delete,
            "memo": self._show_memo,
            "dmn": self._dmn,
            "forget": self._forget,
        }

    async def answer(self, caller: Caller, text: str) -> str:
        """The reply to ``/memory <text>``."""
        try:
            request = parse(text)
            if request.action == "help":
                return render.HELP
            if caller.group is not None and request.scope == "user" and request.action in ("list", "search", "delete"):
                return render.PRIVATE_ONLY
            return await self._actions[request.action](caller, request)
        except AmritaMemoryError as e:
            return str(e)

    async def _status(self, caller: Caller, request: Request) -> str:
        scope = "group" if caller.group is not None else "user"
        page = await self._facts.list(caller, scope=scope, limit=STATUS_TOP)
        chars = len(await self._memo.read(caller))
        return render.status(page, chars, self._memo.limit, scope=scope)

    async def _list(self, caller: Caller, request: Request) -> str:
        offset = (request.page - 1) * render.PAGE_SIZE
        page = await self._facts.list(caller, scope=request.scope, limit=render.PAGE_SIZE, offset=offset)
        return render.listing(page, scope=request.scope, number=request.page)

    async def _search(self, caller: Caller, request: Request) -> str:
        found = await self._facts.recall(caller, scope=request.scope, question=request.words, top_k=SEARCH_TOP)
        return render.results(found, scope=request.scope, words=request.words)

    async def _delete(self, caller: Caller, request: Request) -> str:
        done: list[Listed] = []
        failed: list[str] = []
        for given in request.ids:
            try:
                done.append(await self._facts.forget(caller, given, scope=request.scope))
            except (NotFound, Ambiguous) as e:
                failed.append(str(e))
        return render.deleted(done, failed, scope=request.scope)

    async def _show_memo(self, caller: Caller, request: Request) -> str:
        text = await self._memo.read(caller)
        return render.memo(text, self._memo.limit, group=caller.group is not None)

    async def _forget(self, caller: Caller, request: Request) -> str:
        """First what there is and the code that means exactly that; with the code it is deleted."""
        if self._erasure is None:
            raise Unavailable("现在不能删除，请稍后再试")
        held = await self._erasure.survey(caller)
        if not held:
            return render.NOTHING_KEPT
        code = held.code(caller)
        if request.words.lower() != code:
            return render.asked_to_forget(held, code, again=bool(request.words))
        return render.forgotten(await self._erasure.erase(caller))

    async def _dmn(self, caller: Caller, request: Request) -> str:
        if not (caller.superuser or caller.is_admin):
            raise Forbidden("只有超级用户和管理员可以立即触发整理")
        if self._subconscious is None:
            raise Forbidden("离线巩固循环未启用，请在 config.toml 的 [subconscious] 里开启后重启")
        return await self._subconscious.run_now(request.words or caller.user.account)
