"""Whether the host still keys its chats as we do. Pure: the host's function comes in as a value."""

from __future__ import annotations

from collections.abc import Callable

from .scope import UniId


def key_trouble(make_uni_id: Callable[[int, bool], str]) -> str | None:
    """One sentence when the host forms the key of a chat otherwise than ``UniId.key``; None when they agree.

    ``make_uni_id`` is the host's own, ``(account, is_group) -> key``. Rows are found by this key: where the two differ,
    the host's data and ours do not meet.
    """
    for is_group, ours in ((False, UniId.private(1).key()), (True, UniId.group(1).key())):
        theirs = make_uni_id(1, is_group)
        if theirs != ours:
            return (
                f"宿主的会话编号是 {theirs}，本插件按 {ours} 存取，两边的数据会对不上，请升级本插件或换回原来的 amrita"
            )
    return None
