"""The knowledge tools of a chat: read, search, and suggest for L3 to review. All need ``memory.knowledge``."""

from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import Field

from amrita_plugin_memory.kernel.errors import InvalidInput, Unavailable
from amrita_plugin_memory.kernel.scope import Caller
from amrita_plugin_memory.kernel.text import clean
from amrita_plugin_memory.kernel.toolspec import ToolSpec, describe
from amrita_plugin_memory.knowledge import Knowledge
from amrita_plugin_memory.knowledge.entry import checked
from amrita_plugin_memory.subconscious import Subconscious
from amrita_plugin_memory.subconscious.toolbox.knowledge import found, listed, shown

Kid = Annotated[str, Field(description="知识条目编号")]
MAX_REASON: Final = 300


class KnowledgeServices(Protocol):
    """What these tools work with; None while L3 is switched off."""

    @property
    def knowledge(self) -> Knowledge | None:
        """The knowledge base."""
        ...

    @property
    def subconscious(self) -> Subconscious | None:
        """L3, which reviews suggestions."""
        ...


async def knowledge_list(services: KnowledgeServices, caller: Caller) -> dict[str, Any]:
    """列出全局知识库的条目。"""
    return listed(await _base(services, caller).list())


async def knowledge_read(
    services: KnowledgeServices,
    caller: Caller,
    *,
    kid: Kid,
    start_line: Annotated[int | None, Field(ge=0, description="起始行，从 0 数")] = None,
    end_line: Annotated[int | None, Field(ge=0, description="结束行，不含")] = None,
) -> dict[str, Any]:
    """读取一个知识条目，可只读一段行。"""
    return shown(await _base(services, caller).read(kid), start_line, end_line)


async def knowledge_search(
    services: KnowledgeServices,
    caller: Caller,
    *,
    query: Annotated[str, Field(description="要找的内容")],
    top_k: Annotated[int, Field(ge=1, le=20, description="最多几条")] = 5,
) -> dict[str, Any]:
    """按意思和字词检索全局知识库。"""
    return found(await _base(services, caller).search(query, top_k))


async def knowledge_suggest(
    services: KnowledgeServices,
    caller: Caller,
    *,
    action: Annotated[Literal["create", "update"], Field(description="新建或更新")],
    title: Annotated[str, Field(description="标题，一行")],
    summary: Annotated[str, Field(description="一两句摘要")],
    body: Annotated[str, Field(description="正文")],
    reason: Annotated[str, Field(description="为什么值得写进知识库")],
    kid: Annotated[str | None, Field(description="更新时的条目编号")] = None,
) -> dict[str, Any]:
    """提交一条知识建议，由离线巩固循环审查后才会采纳。"""
    base = _base(services, caller)
    if services.subconscious is None:
        raise Unavailable("知识库建议没有人审：离线巩固循环未启用")
    if action == "update":
        await base.read(kid or "")
    name, about, text = checked(title, summary, body, max_body=base.max_chars)
    suggestion = {"action": action, "title": name, "summary": about, "body": text, "reason": clean(reason)[:MAX_REASON]}
    if action == "update" and kid:
        suggestion["kid"] = kid
    if not suggestion["reason"].strip():
        raise InvalidInput("请写明为什么值得写进知识库")
    await services.subconscious.suggest({**suggestion, "author": caller.user.key()})
    return {"message": "建议已提交，等待审查"}


def _base(services: KnowledgeServices, caller: Caller) -> Knowledge:
    caller.require_knowledge()
    if services.knowledge is None:
        raise Unavailable("全局知识库未启用（需要 [subconscious] enabled 和 enable_knowledge）")
    return services.knowledge


KNOWLEDGE: Final[tuple[ToolSpec, ...]] = tuple(
    describe(one) for one in (knowledge_list, knowledge_read, knowledge_search, knowledge_suggest)
)
