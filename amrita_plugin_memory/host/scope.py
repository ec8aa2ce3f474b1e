"""From an event to the caller behind it. The ids come from the event, never from a model's argument."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from amrita.plugins.perm.API.admin import is_lp_admin
from amrita.plugins.perm.API.rules import any_has_permission
from nonebot import get_driver
from nonebot.adapters.onebot.v11 import GroupMessageEvent, MessageEvent

from amrita_plugin_memory.kernel.scope import Caller, Role, UniId


async def caller_with_rights(event: MessageEvent, *, door: str) -> Caller:
    """As ``caller_of``, with the rights that the host's permission tables give."""
    admin = await is_lp_admin(event)
    knows = admin or await any_has_permission("memory.knowledge")(event)
    return replace(caller_of(event, door=door), may_use_knowledge=knows, is_admin=admin)


def caller_of(event: MessageEvent, *, door: str) -> Caller:
    """Who speaks and where. A temporary session carries a group id and still is a private chat: the type decides."""
    account = event.get_user_id()
    group = UniId.group(event.group_id) if isinstance(event, GroupMessageEvent) else None
    role = event.sender.role if group is not None else None
    return Caller(
        user=UniId.private(account),
        group=group,
        role=cast("Role", role) if role in ("admin", "owner") else "member",
        superuser=account in get_driver().config.superusers,
        session=(group or UniId.private(account)).key(),
        door=door,
        overheard=door == "tool" and group is None and bool(getattr(event, "group_id", None)),
    )
