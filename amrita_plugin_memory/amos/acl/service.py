"""Access lists of a root: ``users/{actor}/acl.json`` and ``acl/global.acl.json``."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from amrita_plugin_memory.amos.errors import ACLDeniedError
from amrita_plugin_memory.amos.ground import Stamp, formats, layout
from amrita_plugin_memory.kernel.errors import InvalidInput, InvalidName

from . import rules
from .rules import AclFile, Action, Lists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import PurePosixPath

    from amrita_plugin_memory.amos.ground import FileRoot

REMEMBERED: Final = 512  # lists kept in memory
SYSTEM: Final = "system"
Stored: TypeAlias = AclFile | Literal["broken"] | None
_log = logging.getLogger("amrita_memory.amos")


@dataclass(slots=True)
class SecurityManager:
    """Who may do what.

    ``manifest_author`` is the actor that stands for the system, ``current_actor`` who asks when nobody is named. A root
    has one that speaks for nobody; each handle has its own from `bound_to`. ``around(actor, change)`` does every change
    of a user's list and what such a change brings with it, in a worker thread.
    """

    files: FileRoot
    manifest_author: str = SYSTEM
    current_actor: str = "anonymous"
    around: Callable[[str, Callable[[], None]], None] = lambda _actor, change: change()
    _lists: dict[PurePosixPath, tuple[Stamp | None, Stored]] = field(
        default_factory=dict["PurePosixPath", "tuple[Stamp | None, Stored]"], init=False
    )

    def bound_to(self, actor: str) -> SecurityManager:
        """The same lists, for another ``current_actor``."""
        bound = SecurityManager(self.files, self.manifest_author, actor, self.around)
        bound._lists = self._lists  # what one of them has read or written, all of them know
        return bound

    async def check_permission(self, resource: str, action: Action, actor: str | None = None) -> bool:
        """True when ``actor`` may do ``action`` to ``resource`` (see ``rules`` for resources and patterns).

        Raises:
            InvalidInput: an unknown action or a path that leaves the root.

        """
        return await asyncio.to_thread(self.check, resource, action, actor or self.current_actor)

    async def assert_permission(self, resource: str, action: Action, actor: str | None = None) -> None:
        """Raise ACLDeniedError unless `check_permission` allows it."""
        if not await self.check_permission(resource, action, actor):
            raise ACLDeniedError(f"没有权限{_VERBS[action]} {resource[:60]}，请让其所有者授权")

    def check(self, resource: str, action: Action, actor: str) -> bool:
        """The same, blocking: for code that is in a worker thread anyway."""
        return self.check_all([resource], action, actor)[0]

    def check_all(self, resources: Sequence[str], action: Action, actor: str) -> list[bool]:
        """`check` for several resources, as the lists are at this moment; each list is looked at once."""
        rules.check_action(action)
        everyone, seen = self._load(layout.GLOBAL_ACL), dict[str, Stored]()
        answers: list[bool] = []
        for resource in resources:
            owner = rules.owner_of(resource, actor)
            if owner is not None and owner not in seen:
                seen[owner] = self._user_list(owner)
            lists = Lists(user=None if owner is None else seen[owner], everyone=everyone)
            answers.append(rules.allows(resource, action, actor, lists=lists, author=self.manifest_author))
        return answers

    async def read_user_acl(self, actor: str) -> AclFile | None:
        """The list of a user; None when there is none.

        Raises:
            InvalidInput: there is one that cannot be read.

        """
        stored = await asyncio.to_thread(self._user_list, actor)
        if stored == "broken":
            raise InvalidInput("这份权限文件已损坏，请由所有者重新写入")
        return stored

    async def write_user_acl(self, actor: str, acl: AclFile, *, by: str | None = None) -> None:
        """Replace the list of a user. Only that user and the system may, and the user stays its owner.

        Raises:
            ACLDeniedError: somebody else asked.
            InvalidInput: the list names another owner.

        """
        who = by or self.current_actor
        if who not in (actor, self.manifest_author):
            raise ACLDeniedError("只有本人可以修改自己的权限文件")
        if acl.owner != actor:
            raise InvalidInput("权限文件的 owner 必须是本人")
        await asyncio.to_thread(self.around, actor, lambda: self._store(layout.user_acl(actor), acl))

    async def write_global_acl(self, acl: AclFile, *, by: str | None = None) -> None:
        """Replace the list that speaks about everything without a list of its own. Only the system may.

        Raises:
            ACLDeniedError: somebody else asked.

        """
        if (by or self.current_actor) != self.manifest_author:
            raise ACLDeniedError("只有系统管理者可以修改全局权限文件")
        await asyncio.to_thread(self._store, layout.GLOBAL_ACL, acl)

    def _user_list(self, owner: str) -> Stored:
        try:
            return self._load(layout.user_acl(owner))
        except InvalidName:
            return "broken"

    def _load(self, path: PurePosixPath) -> Stored:
        try:
            stamp = self.files.stamp(path)
            if stamp is None and not os.path.lexists(f"{self.files.root}/{path}"):
                return None
            known = self._lists.get(path)
            if known is None or known[0] != stamp or stamp is None:
                known = (stamp, self._read(path))
                self._remember(path, known)
        except (OSError, InvalidInput) as error:
            _log.warning("access list %s cannot be read, access is denied: %s", path, error)
            return "broken"
        return known[1]

    def _read(self, path: PurePosixPath) -> Stored:
        data = self.files.read(path)
        if data is None:
            return "broken" if self.files.path(path).exists() else None
        try:
            return rules.read(formats.load_json(data))
        except InvalidInput as error:
            _log.warning("access list %s is broken, access is denied: %s", path, error)
            return "broken"

    def _remember(self, path: PurePosixPath, known: tuple[Stamp | None, Stored]) -> None:
        if len(self._lists) >= REMEMBERED:
            self._lists.clear()
        self._lists[path] = known

    def _store(self, path: PurePosixPath, acl: AclFile) -> None:
        rules.read(rules.write(acl))
        with self.files.lock(path):
            self.files.write_json(path, rules.write(acl))
        self._lists.pop(path, None)


_VERBS: Final[dict[Action, str]] = {"read": "读取", "write": "修改", "execute": "执行"}
