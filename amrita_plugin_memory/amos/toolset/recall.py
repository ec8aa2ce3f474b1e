"""Tools that look things up, compress and analyse."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from amrita_plugin_memory.amos.search import SearchOptions

from .memory import Session

if TYPE_CHECKING:
    from amrita_plugin_memory.amos.facade import Handle

Query = Annotated[str, Field(description="要找的内容；双引号里的词必须原样出现", min_length=1, max_length=500)]
TopK = Annotated[int, Field(description="最多几条", ge=1, le=50)]
Where = Annotated[
    Literal["all", "session", "profile", "workflow", "knowledge", "archive"], Field(description="在哪里找")
]
Said = Annotated[str, Field(description="用户说的话", max_length=20_000)]


async def memory_search(handle: "Handle", *, query: Query, top_k: TopK = 5, scope: Where = "all") -> Any:
    """检索与问题相关的记忆：画像、会话、工作流、知识、归档。"""
    return await handle.search(query, top_k, SearchOptions(scope=scope))


async def memory_search_all(handle: "Handle", *, query: Query, top_k: TopK = 5) -> Any:
    """检索记忆和资产（工具、页面、应用）。"""
    return await handle.search_all(query, top_k)


async def memory_compress(
    handle: "Handle",
    *,
    force: Annotated[bool, Field(description="不到上限也压缩")] = False,
    session_id: Session = None,
) -> Any:
    """压缩当前会话：较早的对话归档，结论写进摘要。"""
    return await handle.compress_session(session_id=session_id, force=force)


async def memory_analyze_turn(
    handle: "Handle",
    *,
    user_msg: Said,
    assistant_msg: Annotated[str, Field(description="助手的回答", max_length=20_000)],
) -> Any:
    """分析一轮对话，找出事实、偏好、待办和可以固化的工作流。"""
    return await handle.analyze_turn(user_msg, assistant_msg)


async def memory_classify_message(handle: "Handle", *, message: Said) -> Any:
    """判断一句话的类别：fact、preference、task、chat、workflow 或 asset。"""
    return await handle.classify_message(message)


async def memory_analyze_session(
    handle: "Handle",
    *,
    session_id: Session = None,
    recent_turns: Annotated[int, Field(description="只看最近几轮", ge=1, le=999)] = 999,
) -> Any:
    """分析一个会话：意图、情绪走向、实体、未决问题、转折点。"""
    return await handle.analyze_session(session_id, recent_turns)


async def memory_extract_facts(
    handle: "Handle",
    *,
    session_id: Session = None,
    turn_count: Annotated[int, Field(description="只看最近几轮", ge=1, le=999)] = 10,
) -> Any:
    """从最近的对话里抽取用户的稳定事实和偏好。"""
    return await handle.extract_facts(session_id, turn_count)
