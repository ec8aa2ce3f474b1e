"""Who a call is for: uni_id, Scope and Caller are immutable values, validated once, passed to every call.

Pure: values in, values out. Keys are compared whole, never by prefix (1234 is not 12345).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .errors import Forbidden, InvalidInput, InvalidName

Kind: TypeAlias = Literal["private", "group"]
ScopeName: TypeAlias = Literal["user", "group"]
Role: TypeAlias = Literal["member", "admin", "owner"]
Style: TypeAlias = Literal["platform", "legacy"]

_PREFIX: Final[dict[Style, dict[Kind, str]]] = {
    "platform": {"private": "QQPlatform_Private_", "group": "QQPlatform_Group_"},
    "legacy": {"private": "user_", "group": "group_"},
}
_ACCOUNT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_OLD_KEY: Final = re.compile(r"(?:[A-Za-z0-9]+_)?(Private|Group|user|group)_([0-9]+)")
MAX_KEY: Final = 64  # width of the host's database column


@dataclass(frozen=True, slots=True)
class UniId:
    """One private chat or one group, as the host keys its data.

    ``account`` is the QQ number, or an open id where the platform has no numbers.
    """

    kind: Kind
    account: str

    def __post_init__(self) -> None:
        if not _ACCOUNT.fullmatch(self.account):
            raise InvalidName(what="会话", name=self.account, why="只能是字母、数字、点、横线和下划线")

    def key(self, style: Style = "platform") -> str:
        """The partition key, ``QQPlatform_Private_1`` (host >= 1.9) or ``user_1`` (host <= 1.8)."""
        return _PREFIX[style][self.kind] + self.account

    @classmethod
    def parse(cls, key: str) -> UniId | None:
        """Read a key of either format; None when it is of neither."""
        for prefixes in _PREFIX.values():
            for kind, prefix in prefixes.items():
                if key.startswith(prefix) and _ACCOUNT.fullmatch(key[len(prefix) :]):
                    return cls(kind, key[len(prefix) :])
        return None

    @classmethod
    def parse_old(cls, key: str) -> UniId | None:
        """Read any key the published plugin ever wrote, other platform prefixes included; None when it is no key.

        Leading zeros go, as they did there, so that old and new rows of one account meet.
        """
        match = _OLD_KEY.fullmatch(key)
        if match is None:
            return cls.parse(key)
        kind: Kind = "group" if match[1].lower() == "group" else "private"
        return cls(kind, match[2].lstrip("0") or "0")

    @classmethod
    def private(cls, account: int | str) -> UniId:
        """The private chat with this account."""
        return cls("private", str(account))

    @classmethod
    def group(cls, account: int | str) -> UniId:
        """The group of this number."""
        return cls("group", str(account))


@dataclass(frozen=True, slots=True)
class Scope:
    """Actor, optional agent and session of an AMOS root; every part is one safe path component."""

    actor: str
    agent: str | None = None
    session: str = "default"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who stands behind a call, taken from the event and never from a model's argument.

    ``group`` is None in a private chat, also in a temporary session that carries a group id.
    """

    user: UniId
    group: UniId | None = None
    role: Role = "member"
    superuser: bool = False
    session: str = ""
    door: str = "tool"
    may_use_knowledge: bool = False
    is_admin: bool = False  # lp.admin of the host
    overheard: bool = False  # a temporary session: the host keeps what tools say there with the group's chat

    def partition(self, scope: str) -> UniId:
        """The partition that ``scope`` ("user" or "group") names for this caller.

        Raises:
            InvalidInput: an unknown scope, or group memory asked for outside a group.

        """
        if scope == "user":
            return self.user
        if scope != "group":
            raise InvalidInput(f"scope 只能是 user 或 group，收到的是 {scope[:20]!r}")
        if self.group is None:
            raise InvalidInput("当前不在群聊中，不能使用群共享记忆")
        return self.group

    @property
    def own_scope(self) -> ScopeName:
        """The scope of the chat itself."""
        return "user" if self.group is None else "group"

    def require_privacy(self) -> None:
        """Raise Forbidden where what is told would lie open to a group: there, or in its record of the chat."""
        if self.group is not None:
            raise Forbidden("个人记忆不在群里显示，请私聊我查看")
        if self.overheard:
            raise Forbidden("临时会话会记进群里，个人的内容不在这里显示，请加好友后私聊查看")

    @property
    def may_manage_group(self) -> bool:
        """True for the owner and admins of the group, and for superusers."""
        return self.superuser or self.role in ("admin", "owner")

    def require_knowledge(self) -> None:
        """Raise Forbidden unless the caller has the node ``memory.knowledge``."""
        if not (self.superuser or self.may_use_knowledge):
            raise Forbidden("无权使用知识库，需要 memory.knowledge 权限")

    def require_group_manager(self) -> None:
        """Raise Forbidden unless the caller may change or delete what belongs to the group."""
        if not self.may_manage_group:
            raise Forbidden("无权修改或删除群共享记忆，只有群主和管理员可以")
