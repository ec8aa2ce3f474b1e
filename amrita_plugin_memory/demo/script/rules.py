"""The rules of the scripted endpoint, as a table: what the user says → which tools are called → how the answer is made.

Pure: values in, values out. No rule holds an answer; answers are quotations from the prompt and from tool results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from .reading import Reading, as_object, hit_texts

LABEL: Final = "（脚本）"
Groups: TypeAlias = Mapping[str, str]
Answer: TypeAlias = Callable[[Reading, Groups], str]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; ``{name}`` in a value is filled with what the rule's pattern found."""

    tool: str
    arguments: Mapping[str, Any]

    def filled(self, groups: Groups) -> Call:
        """The same call with the found words in place."""
        values = {k: v.format_map(groups) if isinstance(v, str) else v for k, v in self.arguments.items()}
        return Call(self.tool, values)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the endpoint sends back: tool calls, or a text."""

    rule: str
    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """``rounds[i]`` is called in the i-th agent round; after the last the answer is made.

    ``memo_word``: when a line of the memo in the prompt contains it, the rule answers from there and calls nothing.
    """

    name: str
    pattern: re.Pattern[str]
    answer: Answer
    rounds: tuple[tuple[Call, ...], ...] = ()
    memo_word: str | None = field(default=None)


def respond(reading: Reading) -> Reply:
    """The reply to one request."""
    if "report" in reading.tools:
        return Reply("content-check", calls=(Call("report", {"content": "无", "invoke": False}),))
    for rule in RULES:
        found = rule.pattern.search(reading.said)
        if found:
            return _apply(rule, reading, {k: (v or "").strip() for k, v in found.groupdict().items()})
    return Reply("label", f"{LABEL}我只是演示用的脚本，不是模型。你刚才说：{reading.said[:60]}")


def _apply(rule: Rule, reading: Reading, groups: Groups) -> Reply:
    line = memo_line(reading.memo, rule.memo_word) if rule.memo_word else None
    if line is not None and reading.rounds == 0:
        return Reply(rule.name, f"{LABEL}备忘录里写着：{line}")
    if reading.tools and reading.rounds < len(rule.rounds):
        facts = {**groups, "memo": _memo_with(reading, groups)}
        calls = tuple(call.filled(facts) for call in rule.rounds[reading.rounds] if call.tool in reading.tools)
        if calls:
            return Reply(rule.name, calls=calls)
        wanted = "、".join(call.tool for call in rule.rounds[reading.rounds])
        return Reply(rule.name, f"{LABEL}没有可用的记忆工具（{wanted}），记忆插件可能没有加载。")
    return Reply(rule.name, rule.answer(reading, groups))


def memo_line(memo: str | None, word: str) -> str | None:
    """The first line of the memo that contains ``word``."""
    return next((line.strip("-· ") for line in (memo or "").splitlines() if word in line), None)


def _memo_with(reading: Reading, groups: Groups) -> str:
    """The memo as `read_memo` gave it, with one more line: a whole replacement keeps what was there."""
    before = str(as_object(reading.result_of("read_memo")).get("memo") or "").strip()
    line = groups.get("line", "") or f"用户叫{groups.get('name', '')}"
    kept = [x for x in before.splitlines() if x.strip() and x.strip() != line]
    return "\n".join([*kept, line])


# ---- how answers are made -------------------------------------------------------------------------------------------
def _stored(reading: Reading, _groups: Groups) -> str:
    trouble = _trouble(reading)
    if trouble:
        return trouble
    done = "、".join(dict.fromkeys(name for name, _ in reading.results))
    return f"{LABEL}记下了（工具：{done}）。" if done else f"{LABEL}没有可用的记忆工具，什么也没有记。"


def _recalled(reading: Reading, _groups: Groups) -> str:
    trouble = _trouble(reading)
    if trouble:
        return trouble
    texts = hit_texts(reading.result_of("read_memory"))[:2]
    return f"{LABEL}我查到：" + "；".join(texts) if texts else f"{LABEL}这里没有查到相关的记忆。"


def _trouble(reading: Reading) -> str | None:
    """The first tool result of this turn that is not a success, quoted."""
    for name, text in reading.results:
        result = as_object(text)
        if result.get("status") != "success":
            return f"{LABEL}{name} 没有成功：{result.get('message') or text[:120]}"
    return None


# ---- the table ------------------------------------------------------------------------------------------------------
def _rule(name: str, pattern: str, answer: Answer, *rounds: tuple[Call, ...], memo_word: str | None = None) -> Rule:
    return Rule(name, re.compile(pattern, re.DOTALL), answer, rounds, memo_word)


def _write(content: str, *, tags: str, importance: str = "medium", scope: str = "user") -> Call:
    return Call("write_memory", {"content": content, "tags": tags, "importance": importance, "scope": scope})


def _search(query: str, *, scope: str = "user") -> Call:
    return Call("read_memory", {"query": query, "top_k": 5, "scope": scope})


_READ_MEMO: Final = Call("read_memo", {})
_UPDATE_MEMO: Final = Call("update_memo", {"content": "{memo}"})
_END: Final = r"[^，,。！!？?\n]"

# Questions come first: 「我喜欢什么？」 is no fact. The group's variants come before the person's.
RULES: Final = (
    _rule("group-question", r"(?P<q>.*(?:群里|本群).*[？?])", _recalled, (_search("{q}", scope="group"),)),
    _rule("name-question", r"我(?:叫|的名字是)(?:什么|啥)", _recalled, (_search("用户叫什么名字"),), memo_word="叫"),
    _rule("recall", r"(?:回忆|还记得)[:：，,]?\s*(?P<q>.+)", _recalled, (_search("{q}"),)),
    _rule("question", r"(?P<q>我.*(?:什么|哪|谁|几|吗).*[？?])", _recalled, (_search("{q}"),)),
    _rule(
        "group-memo", r"群备忘[:：]\s*(?P<line>.+)", _stored, (_READ_MEMO,), (_UPDATE_MEMO,)
    ),
    _rule(
        "group-fact",
        r"(?:记住[:：]\s*)?(?P<fact>(?:群里|本群).+)",
        _stored,
        (_write("{fact}", tags="群", scope="group"),),
    ),
    _rule(
        "name",
        rf"我叫(?P<name>{_END}{{1,20}})",
        _stored,
        (_write("用户叫{name}", tags="身份", importance="high"), _READ_MEMO),
        (_UPDATE_MEMO,),
    ),
    _rule("memo", r"备忘[:：]\s*(?P<line>.+)", _stored, (_READ_MEMO,), (_UPDATE_MEMO,)),
    _rule(
        "allergy",
        rf"我(?P<fact>对{_END}{{1,30}}过敏)",
        _stored,
        (_write("用户{fact}", tags="健康,过敏", importance="high"),),
    ),
    _rule("taste", rf"我(?P<fact>(?:不?喜欢|讨厌|爱){_END}{{1,40}})", _stored, (_write("用户{fact}", tags="喜好"),)),
    _rule("fact", r"记住[:：]\s*(?P<fact>.+)", _stored, (_write("{fact}", tags="事实"),)),
)  # fmt: skip
