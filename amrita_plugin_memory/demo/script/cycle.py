"""What the scripted endpoint does in the background: it tidies by what the tools really answer, and makes nothing up.

Pure: values in, values out.
"""

from __future__ import annotations

from typing import Any, cast

from .reading import Reading, as_object
from .rules import Call, Reply

_STOP = "subconscious_iter_stop"


def is_cycle(reading: Reading) -> bool:
    """Whether a request comes from the background."""
    return _STOP in reading.tools


def tidy(reading: Reading) -> Reply:
    """Merge the first group that is proposed, raise what is kept, write profile and knowledge from the chat, stop."""
    if reading.rounds == 0:
        return Reply("cycle", calls=(Call("subconscious_get_context", {}), Call("subconscious_read_chat_context", {})))
    if reading.rounds == 1:
        return Reply("cycle", calls=(Call("subconscious_duplicate_helper", {}), Call("subconscious_get_profile", {})))
    if reading.rounds == 2:
        calls = (*_merged(reading), *_learnt(reading))
        return Reply("cycle", calls=calls) if calls else _stop("没有要整理的")
    return _stop("合并了重复的记忆，更新了画像和知识库")


def _stop(summary: str) -> Reply:
    return Reply("cycle", calls=(Call(_STOP, {"summary": summary}),))


def _merged(reading: Reading) -> list[Call]:
    groups = _items(reading, "subconscious_duplicate_helper", "groups")
    if not groups:
        return []
    group = cast("list[dict[str, str]]", groups[0])
    kept, *others = sorted(group, key=lambda one: -len(one["text"]))
    deletes = [Call("subconscious_delete_memory", {"id": one["id"]}) for one in others]
    return [Call("subconscious_update_memory", {"id": kept["id"], "importance": "high"}), *deletes]


def _learnt(reading: Reading) -> list[Call]:
    turns = cast("list[dict[str, str]]", _items(reading, "subconscious_read_chat_context", "recent"))
    said = [turn["user"] for turn in turns if "喜欢" in turn["user"] and "忽略" not in turn["user"]]
    if not said:
        return []
    return [
        Call("subconscious_update_profile", {"summary": f"说过：{said[-1]}", "new_lines": f"- {said[-1]}"}),
        Call(
            "subconscious_knowledge_create",
            {"title": "怎样记喜好", "summary": "用户说出喜好时怎样记", "body": "一条一句\n写成陈述句"},
        ),
    ]


def _items(reading: Reading, tool: str, name: str) -> list[Any]:
    found = as_object(reading.result_of(tool) or "").get(name)
    return cast("list[Any]", found) if isinstance(found, list) else []
