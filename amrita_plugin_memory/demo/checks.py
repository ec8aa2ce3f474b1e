"""What a step of the story must have caused, as functions over what was recorded. Each gives its evidence.

Pure: values in, values out. A check that finds nothing to look at fails; silence proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .onebot import Heard, Place
from .script.cycle import is_cycle
from .script.model import Recorded
from .script.reading import as_object
from .script.rules import Call

_EXCERPT = 160


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing said to the bot, and all that followed."""

    place: Place
    text: str
    reply: str | None
    requests: tuple[Recorded, ...] = ()
    seconds: float = 0.0
    silence: str = ""  # why there is no reply, as far as it can be told

    @property
    def chat_requests(self) -> tuple[Recorded, ...]:
        """The requests that belong to the answer; the host's content check and the background are left out."""
        return tuple(r for r in self.requests if "report" not in r.reading.tools and not is_cycle(r.reading))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls that were asked for, in order."""
        return tuple(call for r in self.chat_requests for call in r.reply.calls)

    @property
    def results(self) -> tuple[tuple[str, str], ...]:
        """The (tool, result) pairs of the turn; the last request has seen them all."""
        return max((r.reading.results for r in self.chat_requests), key=len, default=())


@dataclass(frozen=True, slots=True)
class Scene:
    """What a check may look at: the turn, and everything the bot has said since the beginning."""

    turn: Turn
    heard: Sequence[Heard] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether it happened, and the words that show it."""

    ok: bool
    evidence: str


Look: TypeAlias = Callable[[Scene], Finding]


@dataclass(frozen=True, slots=True)
class Check:
    """A claim in plain words and the look that decides it."""

    claim: str
    look: Look = field(repr=False)


def excerpt(text: str, needle: str = "", width: int = _EXCERPT) -> str:
    """One line of at most ``width`` characters around the first ``needle``."""
    flat = " ".join(text.split())
    start = max(flat.find(needle) - width // 3, 0) if needle else 0
    cut = flat[start : start + width]
    return f"{'…' if start else ''}{cut}{'…' if start + width < len(flat) else ''}"


def replied(*needles: str) -> Check:
    """The bot answered, with all these words."""

    def look(scene: Scene) -> Finding:
        reply = scene.turn.reply
        if reply is None:
            return Finding(False, scene.turn.silence or "没有回复")
        missing = [n for n in needles if n not in reply]
        return Finding(
            not missing, f"回复里没有：{'、'.join(missing)}（{excerpt(reply)}）" if missing else excerpt(reply)
        )

    return Check(f"回复里有「{'」「'.join(needles)}」" if needles else "有回复", look)


def reply_omits(*needles: str) -> Check:
    """The bot answered, with none of these words."""

    def look(scene: Scene) -> Finding:
        reply = scene.turn.reply
        if reply is None:
            return Finding(False, scene.turn.silence or "没有回复")
        leaked = [n for n in needles if n in reply]
        return Finding(not leaked, f"泄露了：{'、'.join(leaked)}（{excerpt(reply)}）" if leaked else excerpt(reply))

    return Check(f"回复里没有「{'」「'.join(needles)}」", look)


def called(tool: str, needle: str = "", *, scope: str | None = None) -> Check:
    """The tool was called (with this text, with this scope) and reported success."""

    def look(scene: Scene) -> Finding:
        calls = [c for c in scene.turn.calls if c.tool == tool]
        right = [c for c in calls if needle in str(dict(c.arguments)) and scope in (None, c.arguments.get("scope"))]
        if not right:
            names = "、".join(c.tool for c in scene.turn.calls) or "无"
            return Finding(False, f"没有这样的调用；本轮的工具调用：{names}")
        results = [text for name, text in scene.turn.results if name == tool]
        good = [text for text in results if as_object(text).get("status") == "success"]
        shown = excerpt((good or results or ["没有返回"])[-1])
        return Finding(bool(good), f"{tool} {excerpt(str(dict(right[0].arguments)), width=90)} → {shown}")

    return Check(f"调用了工具 {tool} 并成功", look)


def recalled(needle: str) -> Check:
    """A memory with this text came back from `read_memory`, and the conversation before did not hold it."""

    def look(scene: Scene) -> Finding:
        chat = scene.turn.chat_requests
        results = [text for name, text in scene.turn.results if name == "read_memory"]
        if not results:
            return Finding(False, "本轮没有 read_memory 的结果")
        if needle in chat[0].everything:
            return Finding(False, "调用工具之前，请求里已经有这个词，不能证明是查到的")
        found = [text for text in results if needle in text]
        return Finding(bool(found), excerpt((found or results)[0], needle))

    return Check(f"「{needle}」不在对话里，是 read_memory 从库里查到的", look)


def recall_omits(needle: str) -> Check:
    """`read_memory` was asked and did not give this text."""

    def look(scene: Scene) -> Finding:
        results = [text for name, text in scene.turn.results if name == "read_memory"]
        failed = [text for text in results if as_object(text).get("status") != "success"]
        if failed or not results:
            return Finding(False, f"本轮没有 read_memory 的结果：{excerpt('；'.join(failed))}")
        leaked = [text for text in results if needle in text]
        return Finding(not leaked, excerpt((leaked or results)[0], needle))

    return Check(f"read_memory 查不到「{needle}」", look)


def memo_in_prompt(needle: str) -> Check:
    """Every request of the answer carried the memo with this text in its system prompt."""

    def look(scene: Scene) -> Finding:
        chat = scene.turn.chat_requests
        without = [r for r in chat if needle not in (r.reading.memo or "")]
        if not chat or without:
            return Finding(False, f"{len(chat)} 个请求里有 {len(without)} 个没有带备忘录「{needle}」")
        system = chat[0].reading.system
        start = system.index("<MEMO")
        return Finding(
            True, f"{len(chat)} 个请求都带着：{excerpt(system[start : system.index('</MEMO>') + 7], width=240)}"
        )

    return Check(f"录下的请求证明：备忘录「{needle}」在提示词里", look)


def request_omits(*needles: str) -> Check:
    """No request of this turn holds any of these words, anywhere."""

    def look(scene: Scene) -> Finding:
        requests = scene.turn.requests
        if not requests:
            return Finding(False, "本轮没有录到请求")
        for recorded in requests:
            for needle in needles:
                if needle in recorded.everything:
                    return Finding(False, f"请求里出现了：{excerpt(recorded.everything, needle)}")
        size = sum(len(r.everything) for r in requests)
        return Finding(True, f"{len(requests)} 个请求、共 {size} 字，都不含")

    return Check(f"录下的请求证明：提示词里没有「{'」「'.join(needles)}」", look)


def place_never_saw(place: Place, *needles: str) -> Check:
    """Nothing the bot ever sent to this place holds any of these words."""

    def look(scene: Scene) -> Finding:
        there = [m.text for m in scene.heard if m.address == place.address]
        if not there:
            return Finding(False, "机器人还没有在这里说过话")
        leaked = [text for text in there if any(n in text for n in needles)]
        return Finding(not leaked, excerpt(leaked[0]) if leaked else f"{len(there)} 条消息，都不含")

    return Check(f"这里的消息从未出现「{'」「'.join(needles)}」", look)
