"""The grammar of ``/memory``. Pure: text in, one immutable request out.

    /memory                              the status card
    /memory [user|group] list [page]
    /memory [user|group] search <words>
    /memory [user|group] delete <id> [<id> …]
    /memory memo
    /memory dmn [<account>]
    /memory forget-me [<code>]
    /memory help

Without ``user`` or ``group`` the person's own memory is meant, as in older versions. Words may be Chinese.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.scope import ScopeName

Action: TypeAlias = Literal["status", "list", "search", "delete", "memo", "dmn", "forget", "help"]

_SCOPES: Final[dict[str, ScopeName]] = {"user": "user", "个人": "user", "我": "user", "group": "group", "群": "group"}
_ACTIONS: Final[dict[str, Action]] = {
    "list": "list", "ls": "list", "列表": "list", "列出": "list",
    "search": "search", "find": "search", "搜索": "search", "查找": "search",
    "delete": "delete", "del": "delete", "rm": "delete", "删除": "delete", "删": "delete",
    "memo": "memo", "备忘录": "memo", "备忘": "memo",
    "dmn": "dmn", "整理": "dmn",
    "forget-me": "forget", "忘掉我": "forget", "忘记我": "forget",
    "help": "help", "帮助": "help", "?": "help", "？": "help",
}  # fmt: skip
_SPLIT: Final = re.compile(r"[\s,，、]+")
MAX_DELETES: Final = 20


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked for. ``ids`` only with delete, ``words`` only with search."""

    action: Action
    scope: ScopeName = "user"
    words: str = ""
    page: int = 1
    ids: tuple[str, ...] = ()


def parse(text: str) -> Request:
    """Read what stands behind ``/memory``.

    Raises:
        InvalidInput: an unknown word, or one that is missing; the sentence says what to write.

    """
    scope, rest = _take_scope(text.strip())
    word, _, tail = rest.partition(" ") if " " in rest else (rest, "", "")
    action = _ACTIONS.get(word.lower())
    if action is None:
        if not word:
            return Request("list", scope) if text.strip() else Request("status")
        raise InvalidInput(f"不认识「{word[:20]}」，发送 /memory help 查看用法")
    return _request(action, scope, tail.strip())


def _take_scope(text: str) -> tuple[ScopeName, str]:
    text = re.sub(r"\s+", " ", text)
    word, _, rest = text.partition(" ")
    scope = _SCOPES.get(word.lower())
    return (scope, rest) if scope else ("user", text)


def _request(action: Action, scope: ScopeName, tail: str) -> Request:
    if action == "list":
        return Request("list", scope, page=_page(tail))
    if action == "search":
        if not tail:
            raise InvalidInput(f"请写明要找什么，例如 /memory {scope} search 咖啡")
        return Request("search", scope, words=tail)
    if action == "delete":
        ids = tuple(dict.fromkeys(part for part in _SPLIT.split(tail) if part))
        if not ids:
            raise InvalidInput(f"请写明要删除的编号，例如 /memory {scope} delete a1f3，编号见 /memory {scope} list")
        if len(ids) > MAX_DELETES:
            raise InvalidInput(f"一次最多删除 {MAX_DELETES} 条，这里写了 {len(ids)} 条")
        return Request("delete", scope, ids=ids)
    return Request(action, scope, words=tail)


def _page(text: str) -> int:
    if not text:
        return 1
    match = re.fullmatch(r"[pP第]?\s?([0-9]{1,6})页?", text)
    if match is None or int(match[1]) < 1:
        raise InvalidInput(f"页码要写成正整数，例如 /memory user list 2，收到的是「{text[:20]}」")
    return int(match[1])
