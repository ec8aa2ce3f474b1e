"""The memory tools of a chat: facts (L2) and memo (L1). Descriptions are what the model reads."""

from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import Field

from amrita_plugin_memory.facts import Facts, Listed
from amrita_plugin_memory.kernel.scope import Caller
from amrita_plugin_memory.kernel.text import cut, one_line
from amrita_plugin_memory.kernel.toolspec import ToolSpec, describe
from amrita_plugin_memory.memo import Memo

Scope = Annotated[
    Literal["user", "group"], Field(description="user=说话人个人的记忆，群里只写不读；group=本群共享，仅群聊可用")
]
Where = Annotated[
    Literal["user", "group"] | None, Field(description="不填=当前聊天自己的：私聊里是个人的，群里是本群共享的")
]
Importance = Annotated[Literal["low", "medium", "high"], Field(description="重要性")]
Id = Annotated[str, Field(description="记忆编号，来自 read_memory 或 list_memory")]
PREVIEW: Final = 60


class Services(Protocol):
    """What the surface tools work with."""

    @property
    def facts(self) -> Facts:
        """L2."""
        ...

    @property
    def memo(self) -> Memo:
        """L1."""
        ...


async def write_memory(
    services: Services,
    caller: Caller,
    *,
    content: Annotated[str, Field(description="要记住的一条事实，写成完整的陈述句")],
    tags: Annotated[str, Field(description="标签，逗号分隔")] = "",
    importance: Importance = "medium",
    scope: Scope = "user",
) -> dict[str, Any]:
    """记住一条长期事实。已有相同内容时不会重复写入。"""
    listed = await services.facts.remember(caller, scope=scope, content=content, tags=tags, importance=importance)
    return {"memory_id": listed.short}


async def read_memory(
    services: Services,
    caller: Caller,
    *,
    query: Annotated[str, Field(description="要找的内容，用一句话或几个词")],
    top_k: Annotated[int, Field(ge=1, description="最多返回几条，50 以内")] = 5,
    importance: Annotated[Literal["low", "medium", "high"] | None, Field(description="只找这个重要性")] = None,
    scope: Where = None,
) -> dict[str, Any]:
    """按意思和字词查找记忆，最相关的在前。回答与用户有关的问题前先查。"""
    where = scope or caller.own_scope
    answer = await services.facts.recall(caller, scope=where, question=query, top_k=top_k, importance=importance)
    hits = [{**_entry(found), "relevance": round(found.relevance, 2)} for found in answer.found]
    return {"hits": hits, "note": answer.note}


async def update_memory(
    services: Services,
    caller: Caller,
    *,
    id: Id,
    scope: Scope = "user",
    content: Annotated[str | None, Field(description="新的内容，不改则不填")] = None,
    tags: Annotated[str | None, Field(description="新的标签，逗号分隔，不改则不填")] = None,
    importance: Annotated[Literal["low", "medium", "high"] | None, Field(description="新的重要性，不改则不填")] = None,
) -> dict[str, Any]:
    """修改一条记忆的内容、标签或重要性。群共享记忆只有群主和管理员可改。"""
    listed = await services.facts.amend(caller, id, scope=scope, content=content, tags=tags, importance=importance)
    return {"id": listed.short}


async def delete_memory(services: Services, caller: Caller, *, id: Id, scope: Scope = "user") -> dict[str, Any]:
    """删除一条记忆。群共享记忆只有群主和管理员可删。"""
    listed = await services.facts.forget(caller, id, scope=scope)
    if scope == "user" and (caller.group is not None or caller.overheard):
        return {"id": listed.short}  # the text would stand in the group's record
    return {"id": listed.short, "deleted": cut(one_line(listed.fact.content), PREVIEW)}


async def list_memory(
    services: Services,
    caller: Caller,
    *,
    limit: Annotated[int, Field(ge=1, description="最多几条，50 以内")] = 10,
    offset: Annotated[int, Field(ge=0, description="跳过最新的几条")] = 0,
    scope: Where = None,
) -> dict[str, Any]:
    """列出记忆，新的在前；内容过长时只给开头。"""
    page = await services.facts.list(caller, scope=scope or caller.own_scope, limit=limit, offset=offset)
    memories = [{**_entry(one), "text": cut(one_line(one.fact.content), PREVIEW)} for one in page.facts]
    shown = offset + len(memories)
    return {"memories": memories, "total": page.total, "next_offset": shown if shown < page.total else None}


async def read_memo(services: Services, caller: Caller) -> dict[str, Any]:
    """读取当前会话的备忘录全文。"""
    memo = await services.memo.read(caller)
    return {"memo": memo, "chars": len(memo), "limit": services.memo.limit}


async def append_memo(
    services: Services,
    caller: Caller,
    *,
    content: Annotated[str, Field(description="要追加的一行")],
) -> dict[str, Any]:
    """在备忘录末尾追加一行。"""
    memo = await services.memo.append(caller, content)
    return {"chars": len(memo), "limit": services.memo.limit}


async def update_memo(
    services: Services,
    caller: Caller,
    *,
    content: Annotated[str, Field(description="新的备忘录全文，会替换旧的全文")],
) -> dict[str, Any]:
    """用新的全文替换当前会话的备忘录。备忘录每轮都会看到，只放身份、稳定偏好和常用的工具模式，用陈述句；
    细节用 write_memory。
    """
    memo = await services.memo.replace(caller, content)
    return {"chars": len(memo), "limit": services.memo.limit}


def _entry(listed: Listed) -> dict[str, Any]:
    fact = listed.fact
    entry = {
        "id": listed.short,
        "text": fact.content,
        "tags": fact.tags,
        "importance": fact.importance,
        "date": fact.day,
    }
    return {key: value for key, value in entry.items() if value}


SURFACE: Final[tuple[ToolSpec, ...]] = tuple(
    describe(one)
    for one in (
        write_memory, read_memory, update_memory, delete_memory, list_memory, read_memo, append_memo, update_memo
    )
)  # fmt: skip
