"""L1 into the prompt: the memo block is appended to the system message that the request is really built from."""

import logging

from amrita.plugins.chat.runtime import try_get_amrita_ctx
from amrita_core.hook.event import PreCompletionEvent
from amrita_core.hook.on import on_precompletion

from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.memo import Memo

from .lifecycle import Lifecycle
from .scope import caller_of

_log = logging.getLogger("amrita_memory.host")


def register(lifecycle: Lifecycle) -> None:
    """Register the hook. ``block=False``: the host's default would silence every later hook."""

    @on_precompletion(priority=15, block=False).handle()
    async def inject_memo(event: PreCompletionEvent) -> None:
        context = try_get_amrita_ctx(event.chat_object)
        if context is None:  # a background run, not a chat
            return
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
