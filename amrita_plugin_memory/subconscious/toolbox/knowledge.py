"""The shared knowledge base, and the suggestions that chats have made for it."""

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from amrita_plugin_memory.kernel.errors import Unavailable
from amrita_plugin_memory.kernel.text import cut, one_line
from amrita_plugin_memory.knowledge import Entry, Knowledge, window
from amrita_plugin_memory.subconscious.bench import Bench

Kid = Annotated[str, Field(description="知识条目编号")]
PREVIEW = 80


def base_of(bench: Bench) -> Knowledge:
    """The knowledge base.

    Raises:
        Unavailable: it is switched off.

    """
    if bench.knowledge is None:
        raise Unavailable("全局知识库未启用（enable_knowledge = false）")
    return bench.knowledge


async def subconscious_knowledge_list(bench: Bench) -> dict[str, Any]:
    """列出全部知识条目的编号、标题和摘要开头。"""
    return listed(await base_of(bench).list())


async def subconscious_knowledge_read(
    bench: Bench,
    *,
    kid: Kid,
    start_line: Annotated[int | None, Field(ge=0, description="起始行，从 0 数")] = None,
    end_line: Annotated[int | None, Field(ge=0, description="结束行，不含")] = None,
) -> dict[str, Any]:
    """读取一个知识条目，可只读一段行。"""
    return shown(await base_of(bench).read(kid), start_line, end_line)


async def subconscious_knowledge_search(
    bench: Bench,
    *,
    query: Annotated[str, Field(description="要找的内容")],
    top_k: Annotated[int, Field(ge=1, le=20, description="最多几条")] = 5,
) -> dict[str, Any]:
    """按意思和字词检索知识库。"""
    return found(await base_of(bench).search(query, top_k))


async def subconscious_knowledge_create(
    bench: Bench,
    *,
    title: Annotated[str, Field(description="标题，一行")],
    summary: Annotated[str, Field(description="一两句摘要，用于检索")],
    body: Annotated[str, Field(description="正文，Markdown")],
) -> dict[str, Any]:
    """新建知识条目：只收可迁移的经验，不收任何人的私事。"""
    entry = await base_of(bench).create(title, summary, body)
    bench.record("knowledge", entry.kid, None, asdict(entry))
    return {"kid": entry.kid}


async def subconscious_knowledge_update(
    bench: Bench,
    *,
    kid: Kid,
    title: Annotated[str | None, Field(description="新标题")] = None,
    summary: Annotated[str | None, Field(description="新摘要")] = None,
    body: Annotated[str | None, Field(description="新正文")] = None,
) -> dict[str, Any]:
    """更新知识条目，至少给出一项。"""
    old, new = await base_of(bench).update(kid, title=title, summary=summary, body=body)
    if old != new:
        bench.record("knowledge", kid, asdict(old), asdict(new))
    return {"kid": kid}


async def subconscious_knowledge_delete(bench: Bench, *, kid: Kid) -> dict[str, Any]:
    """删除知识条目。"""
    old = await base_of(bench).delete(kid)
    bench.record("knowledge", kid, asdict(old), None)
    return {"kid": kid, "deleted": old.title}


async def subconscious_read_suggestions(bench: Bench) -> dict[str, Any]:
    """读取对话中提交的知识建议；本轮成功结束后才从队列移除。"""
    bench.reviewed = list(bench.state.suggestions)
    return {"suggestions": [dict(one) for one in bench.reviewed], "total": len(bench.reviewed)}


def listed(entries: list[Entry]) -> dict[str, Any]:
    """Entries as a list for a model."""
    items = [
        {"kid": one.kid, "title": one.title, "summary": cut(one_line(one.summary), PREVIEW), "chars": len(one.body)}
        for one in entries
    ]
    return {"items": items, "total": len(items)}


def shown(entry: Entry, start: int | None, end: int | None) -> dict[str, Any]:
    """One entry with a window of its lines."""
    part = window(entry.body, start, end)
    return {
        "kid": entry.kid,
        "title": entry.title,
        "summary": entry.summary,
        "body_lines": list(part.lines),
        "range_start": part.start,
        "range_end": part.end,
        "total_lines": part.total,
    }


def found(hits: list[tuple[Entry, float]]) -> dict[str, Any]:
    """Search results for a model."""
    items = [
        {"kid": one.kid, "title": one.title, "summary": one.summary, "relevance": round(relevance, 2)}
        for one, relevance in hits
    ]
    return {"items": items, "total": len(items)}
