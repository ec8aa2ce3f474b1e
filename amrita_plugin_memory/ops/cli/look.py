"""``search`` and ``stats``: look into the memory without a bot, also while one runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.scope import Caller, UniId
from amrita_plugin_memory.kernel.text import cut, one_line
from amrita_plugin_memory.ops.bot.folder import BotFolder
from amrita_plugin_memory.settings.file import RecallSettings

from .common import awaited, command, opened
from .output import Output


def unit_of(key: str, user: str, group: str) -> UniId | None:
    """The one partition that the options name; None when none is given.

    Raises:
        InvalidInput: more than one is given, or it is no key.

    """
    given = [text for text in (key, user, group) if text]
    if len(given) > 1:
        raise InvalidInput("--scope、--user、--group 只能给一个")
    if user:
        return UniId.private(user)
    if group:
        return UniId.group(group)
    if not key:
        return None
    unit = UniId.parse_old(key)
    if unit is None:
        raise InvalidInput(f"--scope 应是 QQPlatform_Private_123 或 QQPlatform_Group_456 的样子，不是 {key[:40]}")
    return unit


@click.command()
@click.argument("question")
@click.option("--user", default="", help="QQ 号")
@click.option("--group", default="", help="群号")
@click.option("--scope", "key", default="", help="归属，如 QQPlatform_Private_123")
@click.option("--top-k", type=click.IntRange(1, 50), default=10, help="最多几条")
@command
def search(folder: BotFolder, output: Output, *, question: str, user: str, group: str, key: str, top_k: int) -> None:
    """在一个人或一个群的记忆里按意思和字词查找。"""
    unit = unit_of(key, user, group)

    async def work() -> None:
        async with opened(folder, output, writable=False) as place:
            asked = unit or await _only(place)
            await _search(place, output, asked, question=question, top_k=top_k, wish=folder.file.recall)

    awaited(work)


async def _search(place: Any, output: Output, unit: UniId, *, question: str, top_k: int, wish: RecallSettings) -> None:
    from amrita_plugin_memory.facts import COLLECTION, Facts
    from amrita_plugin_memory.retrieval import Recall, leaning_of

    if await place.store.open(COLLECTION, create=False) is None:
        output.finish({"hits": [], "note": ""}, "还没有记忆")
    facts = Facts(
        store=place.store,
        embedder=place.embedder,
        recall=Recall(place.embedder, leaning=lambda: leaning_of(wish)),
        clock=place.pace.clock,
        limit=lambda: 0,
    )
    group = unit if unit.kind == "group" else None
    caller = Caller(unit, group, superuser=True, door="cli")
    answer = await facts.recall(caller, scope="group" if group else "user", question=question, top_k=top_k)
    hits = [
        {
            "id": hit.fact.id,
            "short": hit.short,
            "relevance": round(hit.relevance, 4),
            "content": hit.fact.content,
            "tags": hit.fact.tags,
            "importance": hit.fact.importance,
            "created_at": hit.fact.created_at,
        }
        for hit in answer.found
    ]
    lines = [f"{hit['relevance']:.2f}  {hit['short']}  {cut(one_line(str(hit['content'])), 100)}" for hit in hits]
    if answer.note:
        output.say(answer.note)
    output.finish({"scope": unit.key(), "hits": hits, "note": answer.note}, "\n".join(lines) or "没有找到")


async def _only(place: Any) -> UniId:
    from amrita_plugin_memory.facts import COLLECTION

    collection = await place.store.open(COLLECTION, create=False)
    keys: set[str] = set()
    if collection is not None:
        async for page in collection.pages():
            keys |= {str(row.metadata.get("user_id", "")) for row in page}
    unit = UniId.parse_old(next(iter(keys))) if len(keys) == 1 else None
    if unit is None:
        raise InvalidInput(f"有 {len(keys)} 个分区，请用 --user、--group 或 --scope 指明一个")
    return unit


@click.command()
@command
def stats(folder: BotFolder, output: Output) -> None:
    """统计记忆：条数、范围、重要性、月份、标签、字数。"""

    async def work() -> None:
        async with opened(folder, output, writable=False) as place:
            data = await _stats(place)
            output.finish(data, _stats_text(data))

    awaited(work)


async def _stats(place: Any) -> dict[str, Any]:
    from amrita_plugin_memory.facts import COLLECTION
    from amrita_plugin_memory.facts.fact import from_row

    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("scopes", "importance", "months", "tags", "doors", "partitions")
    }
    rows = chars = 0
    collection = await place.store.open(COLLECTION, create=False)
    if collection is not None:
        async for page in collection.pages():
            for fact in map(from_row, page):
                rows, chars = rows + 1, chars + len(fact.content)
                counts["scopes"][fact.scope] += 1
                counts["importance"][fact.importance] += 1
                counts["months"][fact.created_at[:7] or "?"] += 1
                counts["doors"][fact.door or "旧版"] += 1
                counts["partitions"][fact.partition] += 1
                counts["tags"].update(tag for tag in fact.tags.split(",") if tag)
    return {
        "rows": rows,
        "characters": chars,
        "mean_length": round(chars / rows, 1) if rows else 0,
        "partitions": len(counts["partitions"]),
        "largest": dict(counts["partitions"].most_common(10)),
        "scopes": dict(counts["scopes"]),
        "importance": dict(counts["importance"]),
        "months": dict(sorted(counts["months"].items())),
        "doors": dict(counts["doors"]),
        "tags": dict(counts["tags"].most_common(20)),
    }


def _stats_text(data: dict[str, Any]) -> str:
    lines = [f"共 {data['rows']} 条，{data['partitions']} 个分区，平均 {data['mean_length']} 字"]
    for name, label in (
        ("scopes", "范围"),
        ("importance", "重要性"),
        ("months", "月份"),
        ("tags", "标签"),
        ("largest", "最多的分区"),
    ):
        shown = "  ".join(f"{key} {count}" for key, count in data[name].items())
        lines.append(f"{label}：{shown or '—'}")
    return "\n".join(lines)
