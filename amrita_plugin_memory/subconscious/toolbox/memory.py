"""Facts and memo: the same service and the same bounds as the chat side; the partition is the target's own."""

from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from amrita_plugin_memory.facts import Fact, Listed
from amrita_plugin_memory.kernel.text import cut, one_line
from amrita_plugin_memory.subconscious.bench import Bench
from amrita_plugin_memory.subconscious.rules.dedup import groups

Importance = Literal["low", "medium", "high"]
Id = Annotated[str, Field(description="记忆编号")]
PREVIEW: Final = 80
MERGE_GUIDE: Final = (
    "逐组判断：说的是同一件事就保留最完整的一条（用更新补全），删除其余；"
    "互相矛盾的以较新的为准；只是相关而不重复的都保留。"
)


async def subconscious_read_memory(
    bench: Bench,
    *,
    query: Annotated[str, Field(description="要找的内容")],
    top_k: Annotated[int, Field(ge=1, le=50, description="最多几条")] = 5,
    importance: Annotated[Importance | None, Field(description="只找这个重要性")] = None,
) -> dict[str, Any]:
    """按意思和字词检索目标用户的记忆。"""
    answer = await bench.facts.recall(bench.caller, scope="user", question=query, top_k=top_k, importance=importance)
    return {"hits": [_entry(one) for one in answer.found], "note": answer.note}


async def subconscious_write_memory(
    bench: Bench,
    *,
    content: Annotated[str, Field(description="一条陈述事实")],
    tags: Annotated[str, Field(description="标签，逗号分隔")],
    importance: Annotated[Importance, Field(description="重要性")],
) -> dict[str, Any]:
    """写入一条新记忆。"""
    listed = await bench.facts.remember(bench.caller, scope="user", content=content, tags=tags, importance=importance)
    bench.record("fact", listed.fact.id, None, asdict(listed.fact))
    return {"id": listed.short}


async def subconscious_update_memory(
    bench: Bench,
    *,
    id: Id,
    content: Annotated[str | None, Field(description="新的内容")] = None,
    tags: Annotated[str | None, Field(description="新的标签")] = None,
    importance: Annotated[Importance | None, Field(description="新的重要性")] = None,
) -> dict[str, Any]:
    """修改一条记忆的内容、标签或重要性。"""
    before = {one.fact.id: one.fact for one in (await bench.facts.survey(bench.caller, scope="user")).facts}
    listed = await bench.facts.amend(
        bench.caller, id, scope="user", content=content, tags=tags, importance=importance
    )  # fmt: skip
    old = before.get(listed.fact.id)
    if old is not None and old != listed.fact:
        bench.record("fact", listed.fact.id, asdict(old), asdict(listed.fact))
    return {"id": listed.short}


async def subconscious_delete_memory(bench: Bench, *, id: Id) -> dict[str, Any]:
    """删除一条记忆。"""
    listed = await bench.facts.forget(bench.caller, id, scope="user")
    bench.record("fact", listed.fact.id, asdict(listed.fact), None)
    return {"id": listed.short, "deleted": cut(one_line(listed.fact.content), PREVIEW)}


async def subconscious_list_memory(
    bench: Bench,
    *,
    limit: Annotated[int, Field(ge=1, le=50, description="最多几条")] = 20,
    offset: Annotated[int, Field(ge=0, description="跳过最新的几条")] = 0,
) -> dict[str, Any]:
    """列出目标用户的记忆，新的在前。"""
    page = await bench.facts.list(bench.caller, scope="user", limit=limit, offset=offset)
    shown = offset + len(page.facts)
    return {
        "memories": [{**_entry(one), "text": cut(one_line(one.fact.content), PREVIEW)} for one in page.facts],
        "total": page.total,
        "next_offset": shown if shown < page.total else None,
    }


async def subconscious_duplicate_helper(
    bench: Bench,
    *,
    tag: Annotated[str | None, Field(description="只看带这个标签的")] = None,
    importance: Annotated[Importance | None, Field(description="只看这个重要性的")] = None,
    limit: Annotated[int, Field(ge=1, le=20, description="最多几组")] = 5,
) -> dict[str, Any]:
    """找出可能重复的记忆，成组返回，附合并指导；是否合并由你判断。"""
    survey = await bench.facts.survey(bench.caller, scope="user")
    wanted = [i for i, one in enumerate(survey.facts) if _matches(one.fact, tag, importance)]
    if survey.matrix is None:
        return {"groups": [], "note": "嵌入模型正在更换，暂时不能按相似度分组"}
    found = groups(survey.matrix[wanted])
    shown = [[_entry(survey.facts[wanted[i]]) for i in group] for group in found[:limit]]
    return {"groups": shown, "total_groups": len(found), "guide": MERGE_GUIDE if found else "没有发现可能重复的记忆"}


async def subconscious_get_memory_stats(bench: Bench) -> dict[str, Any]:
    """记忆的数量、重要性和标签分布、最早与最晚的日期。"""
    facts = [one.fact for one in (await bench.facts.survey(bench.caller, scope="user")).facts]
    tags: dict[str, int] = {}
    for fact in facts:
        for tag in filter(None, fact.tags.split(",")):
            tags[tag] = tags.get(tag, 0) + 1
    dates = sorted(fact.created_at for fact in facts if fact.created)
    return {
        "total": len(facts),
        "limit": bench.facts.limit,
        "by_importance": {name: sum(f.importance == name for f in facts) for name in ("high", "medium", "low")},
        "by_tag": dict(sorted(tags.items(), key=lambda item: -item[1])[:20]),
        "oldest": dates[0][:10] if dates else "",
        "newest": dates[-1][:10] if dates else "",
        "avg_length": sum(len(f.content) for f in facts) // len(facts) if facts else 0,
    }


async def subconscious_update_memo(
    bench: Bench,
    *,
    content: Annotated[str, Field(description="新的备忘录全文，陈述句；按 身份 > 偏好 > 工具模式 > 近期上下文 排序")],
) -> dict[str, Any]:
    """整篇替换目标用户的备忘录；临近上限时把细节写进记忆，备忘录只留指针。"""
    before = await bench.memo.read(bench.caller)
    after = await bench.memo.replace(bench.caller, content)
    if after != before:
        bench.record("memo", bench.caller.user.key(), {"text": before}, {"text": after})
    return {"chars": len(after), "limit": bench.memo.limit}


def _matches(fact: Fact, tag: str | None, importance: str | None) -> bool:
    return (not tag or tag in fact.tags.split(",")) and (not importance or fact.importance == importance)


def _entry(one: Listed) -> dict[str, Any]:
    fact = one.fact
    entry = {"id": one.short, "text": fact.content, "tags": fact.tags, "importance": fact.importance, "date": fact.day}
    return {key: value for key, value in entry.items() if value}
