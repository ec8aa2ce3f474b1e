"""Registers the surface tools with the host's tool manager, and finds the caller behind a call."""

from typing import Any

from amrita.plugins.chat.runtime import try_get_amrita_ctx
from amrita_core import FunctionDefinitionSchema, FunctionParametersSchema, ToolContext, on_tools

from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.kernel.toolrun import answer, run
from amrita_plugin_memory.kernel.toolspec import ToolSpec
from amrita_plugin_memory.tools import SURFACE

from .lifecycle import Lifecycle
from .scope import caller_of


def register(lifecycle: Lifecycle) -> None:
    """Offer every surface tool in every chat."""
    for tool in SURFACE:
        _register(lifecycle, tool)


def _register(lifecycle: Lifecycle, tool: ToolSpec) -> None:
    @on_tools(definition(tool), custom_run=True)
    async def call(ctx: ToolContext) -> str:
        chat = ctx.ctx.chat_object
        context = try_get_amrita_ctx(chat) if chat is not None else None
        if context is None:
            return answer({"status": "error", "message": "记忆工具只能在聊天中使用"})
        try:
            app = lifecycle.app
            caller = caller_of(context["event"], door="tool")
        except AmritaMemoryError as e:
            return answer({"status": "error", "message": str(e)})
        return await run(tool, app, caller, given=ctx.data)


def definition(tool: ToolSpec) -> FunctionDefinitionSchema:
    """The tool's schema as the host writes it."""
    parameters: dict[str, Any] = tool.parameters
    return FunctionDefinitionSchema(
        name=tool.name,
        description=tool.description,
        parameters=FunctionParametersSchema.model_validate(parameters),
    )
