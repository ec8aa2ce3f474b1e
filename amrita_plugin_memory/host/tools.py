"""Registers the surface tools with the host's tool manager, and finds the caller behind a call."""

from collections.abc import Callable

from amrita.plugins.chat.runtime import try_get_amrita_ctx
from amrita_core import ToolContext, on_tools

from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.kernel.toolrun import answer, run
from amrita_plugin_memory.kernel.toolspec import ToolSpec
from amrita_plugin_memory.tools import KNOWLEDGE, SURFACE

from .lifecycle import Lifecycle
from .schema import definition
from .scope import caller_with_rights


def register(lifecycle: Lifecycle) -> None:
    """Offer the surface tools once the services are open, those of the knowledge base only while there is one."""
    for tool in SURFACE:
        _register(lifecycle, tool, offered=lambda: lifecycle.is_open)
    for tool in KNOWLEDGE:
        _register(lifecycle, tool, offered=lambda: lifecycle.has_knowledge)


def _register(lifecycle: Lifecycle, tool: ToolSpec, *, offered: Callable[[], bool]) -> None:
    @on_tools(definition(tool), custom_run=True, enable_if=offered)
    async def call(ctx: ToolContext) -> str:
        chat = ctx.ctx.chat_object
        context = try_get_amrita_ctx(chat) if chat is not None else None
        if context is None:
            return answer({"status": "error", "message": "记忆工具只能在聊天中使用"})
        try:
            app = lifecycle.app
            caller = await caller_with_rights(context["event"], door="tool")
        except AmritaMemoryError as e:
            return answer({"status": "error", "message": str(e)})
        return await run(tool, app, caller, given=ctx.data)
