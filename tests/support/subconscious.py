"""A target for L3 on the shared host, and a script that tidies by what the tools really answer."""

import json
from pathlib import Path

from amrita_plugin_memory.demo.script.reading import Reading
from amrita_plugin_memory.demo.script.rules import Call, Reply

TARGET = 31900
QUIET_MINUTES = 0.1
CONFIG = f"""
[subconscious]
enabled = true
target_user_id = "{TARGET}"
rethink_base_delay_minutes = {QUIET_MINUTES}
rethink_penalty_multiplier = 1.0
"""


def enable(folder: Path) -> None:
    """Switch L3 on for the target before the host starts."""
    path = folder / "config" / "amrita_plugin_memory" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONFIG, "utf-8")


def is_cycle(reading: Reading) -> bool:
    """Whether a request comes from the background."""
    return "subconscious_iter_stop" in reading.tools


def tidy(reading: Reading) -> Reply:
    """Merge the first group that the helper proposes, raise what is kept, write profile and knowledge, and stop."""
    if reading.rounds == 0:
        return Reply("cycle", calls=(Call("subconscious_get_context", {}), Call("subconscious_read_chat_context", {})))
    if reading.rounds == 1:
        return Reply("cycle", calls=(Call("subconscious_duplicate_helper", {}), Call("subconscious_list_memory", {})))
    if reading.rounds == 2:
        return Reply("cycle", calls=tuple(_merge(reading)) + tuple(_learn(reading)))
    return Reply("cycle", calls=(Call("subconscious_iter_stop", {"summary": "合并了重复的记忆，写了画像"}),))


def _merge(reading: Reading) -> list[Call]:
    groups = json.loads(reading.result_of("subconscious_duplicate_helper") or "{}").get("groups", [])
    calls: list[Call] = []
    for group in groups[:1]:
        kept, *others = sorted(group, key=lambda one: -len(one["text"]))
        calls.append(Call("subconscious_update_memory", {"id": kept["id"], "importance": "high"}))
        calls += [Call("subconscious_delete_memory", {"id": one["id"]}) for one in others]
    return calls


def _learn(reading: Reading) -> list[Call]:
    said = json.loads(reading.result_of("subconscious_read_chat_context") or "{}").get("recent", [])
    lines = [turn["user"] for turn in said if "忽略" not in turn["user"]]
    if not lines:
        return []
    return [
        Call("subconscious_update_profile", {"summary": "爱喝茶的人", "new_lines": f"- 说过：{lines[0]}"}),
        Call("subconscious_knowledge_create", {"title": "泡茶", "summary": "怎样泡茶", "body": "水要热\n时间要短"}),
    ]
