"""The core's own ReAct strategy, run with our tools, bounded by iterations and tokens, ended by ``iter_stop``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from amrita.plugins.chat.utils.preset import resolve_preset
from amrita_core import ToolContext, ToolsManager, get_config, on_tools
from amrita_core.builtins.agent import ReActAgentStrategy
from amrita_core.builtins.workflows import REACT_ONLY
from amrita_core.chatmanager import ChatObject
from amrita_core.config import AmritaConfig
from amrita_core.libchat import call_completion
from amrita_core.tools.manager import MultiToolsManager
from amrita_core.types import CONTENT_LIST_TYPE, Message, UniResponse
from amrita_sense.streaming import SuspendObjectStream

from amrita_plugin_memory.host.schema import definition
from amrita_plugin_memory.kernel.toolspec import ToolSpec
from amrita_plugin_memory.subconscious.ports import CallTool, Ending, Limits, Outcome, ReasoningFailed

from .backend import IsolatedBackend
from .usage import record_usage

_log = logging.getLogger("amrita_memory.subconscious")
_ANSWER_TIMEOUT = 120.0


class CoreReasoner:
    """Reasons with the model preset of the host's chats."""

    def __init__(self, *, extra_tools: Callable[[], Sequence[str]]) -> None:
        self._extra_tools = extra_tools

    async def run(
        self,
        *,
        account: str,
        system: str,
        opening: str,
        tools: Sequence[ToolSpec],
        call: CallTool,
        stopped: Callable[[], bool],
        limits: Limits,
    ) -> Outcome:
        """See Reasoner."""
        ending: list[Ending] = []
        chat = ChatObject(
            train={"role": "system", "content": system},
            user_input=opening,
            session_id=f"subconscious_{account}",
            config=_config(limits),
            preset=await resolve_preset(),
            backend=IsolatedBackend(self._toolset(tools, call)).slots(),
            agent_strategy=_strategy(stopped, limits, ending),
            io_stream=SuspendObjectStream(callback=_ignore),
            workflow=REACT_ONLY.render(),
        )
        try:
            chat.begin()
            await chat
        except asyncio.CancelledError:
            chat.terminate()
            raise
        finally:
            prompt, completion = _cost(chat)
            with suppress(asyncio.CancelledError):
                await asyncio.shield(record_usage(account, prompt, completion))
        error = chat.get_exception()
        if error is not None:
            reason = f"模型没有完成这一轮（{type(error).__name__}），请检查模型预设和网络"
            raise ReasoningFailed(reason, tokens=prompt + completion) from error
        abstract = chat.data.abstract if limits.compress else ""
        last: Ending = ending[-1] if ending else "stopped" if stopped() else "finished"
        return Outcome(last, prompt, completion, abstract or "")

    async def write(self, *, account: str, system: str, text: str) -> tuple[str, int]:
        """See Reasoner."""
        messages: CONTENT_LIST_TYPE = [Message(role="system", content=system), Message(role="user", content=text)]
        parts: list[str] = []
        tokens, prompt, completion = 0, 0, 0
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT):
                async for chunk in call_completion(messages, preset=await resolve_preset()):
                    if isinstance(chunk, UniResponse):
                        parts = [chunk.content or "".join(parts)]
                        if chunk.usage is not None:
                            prompt, completion = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
                    elif isinstance(chunk, str):
                        parts.append(chunk)
        except Exception as e:  # the core raises its providers' errors as they are
            raise ReasoningFailed(f"模型没有写出这句话（{type(e).__name__}）") from e
        tokens = prompt + completion
        await record_usage(account, prompt, completion)
        return "".join(parts), tokens

    def _toolset(self, tools: Sequence[ToolSpec], call: CallTool) -> MultiToolsManager:
        manager = MultiToolsManager()
        for tool in tools:
            _register(manager, tool, call)
        for name in self._extra_tools():
            data = ToolsManager().get_tool(name)
            if data is None:
                _log.warning("[Subconscious] allowed_tools 里的 %s 不存在，已忽略", name)
            elif not manager.has_tool(name):
                manager.register_tool(data)
        return manager


def _register(manager: MultiToolsManager, tool: ToolSpec, call: CallTool) -> None:
    @on_tools(definition(tool), custom_run=True, bound_to=manager)
    async def answer(ctx: ToolContext) -> str:
        given: Mapping[str, Any] = ctx.data
        return await call(tool, given)


def _strategy(stopped: Callable[[], bool], limits: Limits, ending: list[Ending]) -> type[ReActAgentStrategy]:
    class BoundedStrategy(ReActAgentStrategy):
        """One round at a time, as long as the run may go on."""

        rounds = 0

        async def single_execute(self) -> bool:
            if self.rounds >= limits.iterations:
                ending.append("iterations")
                return False
            if limits.tokens is not None and sum(_cost(self.ctx.chat_object)) >= limits.tokens:
                ending.append("budget")
                return False
            self.rounds += 1
            more = await super().single_execute()
            return more and not stopped()

    return BoundedStrategy


def _config(limits: Limits) -> AmritaConfig:
    config = get_config().model_copy(deep=True)
    config.function_config.agent_tool_call_limit = limits.iterations
    config.builtin.loop_reasoning_trigger = limits.loop_threshold
    config.builtin.tool_calling_mode = "agent"
    llm: Any = config.llm
    if hasattr(llm, "context_strategy"):  # core >= 1.2
        llm.context_strategy = "compact" if limits.compress else "none"
    elif hasattr(llm, "enable_compaction"):
        llm.enable_compaction = limits.compress
    return config


def _cost(chat: ChatObject | None) -> tuple[int, int]:
    """Prompt and completion tokens of a run so far; while it runs they stand in its ledger."""
    if chat is None:
        return 0, 0
    state: Any = chat._di_resp  # pyright: ignore[reportPrivateUsage] - the core has no public door to a run's ledger

    usage = getattr(getattr(state, "usage", None), "extra_total", None) or state.extra_usage
    return int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0)


async def _ignore(*_: object) -> None:
    """The run's stream has no reader; an unread queue would block it."""
