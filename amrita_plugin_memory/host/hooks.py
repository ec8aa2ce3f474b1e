"""L1 into the prompt, and the chat into L3. Hooks of the core take their parameters by annotation."""

import logging
import re
from typing import Final

from amrita.plugins.chat.runtime import AmritaBotContext, try_get_amrita_ctx
from amrita_core.hook.event import CompletionEvent, PreCompletionEvent
from amrita_core.hook.on import on_completion, on_precompletion
from nonebot import on_message
from nonebot.adapters.onebot.v11 import Bot, GroupMessageEvent, MessageEvent

from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.memo import Memo

from .lifecycle import Lifecycle
from .scope import caller_of

_log = logging.getLogger("amrita_memory.host")
# The host writes what was said as "[member][time][nick（number）]说:text"; only the text belongs into a transcript.
_SAID: Final = re.compile(r"^(?:\[[^\]]*\])+说[:：]", re.MULTILINE)


def register(lifecycle: Lifecycle) -> None:
    """Register the hooks. ``block=False``: the host's default would silence every later hook."""

    @on_precompletion(priority=15, block=False).handle()
    async def inject_memo(event: PreCompletionEvent) -> None:
        context = try_get_amrita_ctx(event.chat_object)
        if context is not None:  # None: a background run, not a chat
            await _inject(lifecycle, event, context)

    @on_completion(priority=15, block=False).handle()
    async def record_turn(event: CompletionEvent) -> None:
        context = try_get_amrita_ctx(event.chat_object)
        if context is not None:
            await _record(lifecycle, event, context)

    @on_message(priority=1, block=False).handle()
    async def notice(bot: Bot, event: MessageEvent) -> None:
        await _notice(lifecycle, bot, event)


async def _inject(lifecycle: Lifecycle, event: PreCompletionEvent, context: AmritaBotContext) -> None:
    try:
        owner = Memo.owner(caller_of(context["event"], door="hook"))
        block = await lifecycle.app.memo.block(owner)
    except AmritaMemoryError as e:
        _log.warning("[Memory] 本轮没有注入备忘录：%s", e)
        return
    # In place: the host deep-copies everything else, and what is put among the messages would be stored each turn.
    train = event.message.train
    if block and block not in train.content:
        train.content += block
        _log.debug("[Memory] 已注入 %s 的备忘录（%d 字）", owner.key(), len(block))


async def _record(lifecycle: Lifecycle, event: CompletionEvent, context: AmritaBotContext) -> None:
    """One turn into the AMOS root, without tool calls and without what we put into the prompt."""
    try:
        l3 = lifecycle.app.l3
        if l3 is None:
            return
        said = event.user_input if isinstance(event.user_input, str) else context["event"].get_plaintext()
        owner = Memo.owner(caller_of(context["event"], door="hook"))
        lifecycle.later(l3.transcripts.record(owner, _SAID.sub("", said), event.model_response))
    except AmritaMemoryError as e:
        _log.warning("[Memory] 本轮聊天没有记入档案：%s", e)


async def _notice(lifecycle: Lifecycle, bot: Bot, event: MessageEvent) -> None:
    """Every message of a target, in private or in a group, moves its cycle away."""
    try:
        l3 = lifecycle.app.l3
        if l3 is None:
            return
        account = event.get_user_id()
        lifecycle.messenger.met(account, bot.self_id)
        await l3.service.spoke(account, private=not isinstance(event, GroupMessageEvent))
    except AmritaMemoryError as e:
        _log.debug("[Subconscious] %s", e)
