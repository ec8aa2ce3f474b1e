"""`/memory` and `/记忆`: registered with block=True, so that what is asked never lands in the chat's own context."""

import logging

from amrita.plugins.menu.models import MatcherData
from nonebot import on_command
from nonebot.adapters.onebot.v11 import Message, MessageEvent
from nonebot.matcher import Matcher
from nonebot.params import CommandArg

from amrita_plugin_memory.kernel.errors import AmritaMemoryError

from .lifecycle import Lifecycle
from .scope import caller_with_rights

_log = logging.getLogger("amrita_memory.host")
_MENU = MatcherData(
    name="记忆",
    description="查看、搜索和删除机器人记住的事",
    usage=[
        "/memory 查看概况",
        "/memory user list [页码]",
        "/memory user search <关键词>",
        "/memory user delete <编号>",
        "/memory group list|search|delete（删除仅群主和管理员）",
        "/memory memo 查看备忘录",
        "/memory 忘掉我 删除关于你的一切（私聊，先列出再确认）",
        "/memory dmn 立即整理一次（仅管理员）",
    ],
)


def register(lifecycle: Lifecycle) -> None:
    """Register the command and its menu entry."""
    command = on_command(
        "memory", aliases={"记忆"}, state=_MENU.model_dump(), priority=10, block=True, force_whitespace=True
    )

    @command.handle()
    async def memory(matcher: Matcher, event: MessageEvent, args: Message = CommandArg()) -> None:  # noqa: B008
        await matcher.finish(await _answer(lifecycle, event, args.extract_plain_text()))


async def _answer(lifecycle: Lifecycle, event: MessageEvent, text: str) -> str:
    try:
        return await lifecycle.commands.answer(await caller_with_rights(event, door="command"), text)
    except AmritaMemoryError as e:
        return str(e)
    except Exception:  # noqa: BLE001 - the border to the chat: a person gets a sentence, the log gets the cause
        _log.exception("[Memory] /memory 出错")
        return "记忆命令内部出错，原因已写入日志，请稍后再试"
