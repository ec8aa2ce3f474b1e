"""What ``/memory`` answers, as text. Pure. Short ids, numbered lines, relevance as dots; never a raw distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from amrita_plugin_memory.facts import Found, Importance, Listed, Page, Recalled
from amrita_plugin_memory.kernel.scope import ScopeName
from amrita_plugin_memory.kernel.text import cut, one_line
from amrita_plugin_memory.retrieval import dots

if TYPE_CHECKING:
    from amrita_plugin_memory.app import Holdings

PAGE_SIZE: Final = 8
PREVIEW: Final = 60
LABEL: Final[dict[ScopeName, str]] = {"user": "个人", "group": "群共享"}
WEIGHT: Final[dict[Importance, str]] = {"low": "", "medium": "", "high": "★"}
PRIVATE_ONLY: Final = "个人记忆不在群里显示，请私聊我发送 /memory"
HELP: Final = """\
/memory 查看概况
/memory user list [页码]　列出个人记忆
/memory user search <关键词>　搜索个人记忆
/memory user delete <编号>　删除个人记忆，可写多个编号
/memory group list [页码]　列出群共享记忆
/memory group search <关键词>　搜索群共享记忆
/memory group delete <编号>　删除群共享记忆（仅群主和管理员）
/memory memo　查看备忘录
/memory 忘掉我　删除关于你的一切（私聊，先列出再确认）
/memory dmn　立即整理一次（仅管理员）
省略 user 时默认个人；也可以用中文：/记忆 列表、/记忆 搜索 咖啡、/记忆 删除 a1f3"""


def listing(page: Page, *, scope: ScopeName, number: int) -> str:
    """One page of a partition."""
    if not page.total:
        return f"暂无{LABEL[scope]}记忆"
    pages = page_count(page.total)
    if not page.facts:
        return f"{LABEL[scope]}记忆只有 {pages} 页，没有第 {number} 页"
    first = (number - 1) * PAGE_SIZE + 1
    head = f"📒 {LABEL[scope]}记忆列表（共 {page.total} 条，上限 {page.limit}，第 {number}/{pages} 页）"
    lines = [_line(first + i, one) for i, one in enumerate(page.facts)]
    more = [f"下一页：/memory {scope} list {number + 1}"] if number < pages else []
    return "\n".join([head, *lines, *more])


def results(recalled: Recalled, *, scope: ScopeName, words: str) -> str:
    """What a search found, with the relevance of each."""
    wanted = cut(one_line(words), 30)
    tail = [f"（{recalled.note}）"] if recalled.note else []
    if not recalled.found:
        return "\n".join([f"🔍 {LABEL[scope]}记忆搜索「{wanted}」：没有找到", *tail])
    head = f"🔍 {LABEL[scope]}记忆搜索「{wanted}」（● 越多越相关）"
    return "\n".join([head, *(_hit(i + 1, one) for i, one in enumerate(recalled.found)), *tail])


def deleted(done: Sequence[Listed], failed: Sequence[str], *, scope: ScopeName) -> str:
    """What was deleted, and why the rest was not."""
    lines = [f"已删除{LABEL[scope]}记忆 #{one.short}：{preview(one)}" for one in done]
    return "\n".join([*lines, *failed])


def memo(text: str, limit: int, *, group: bool) -> str:
    """The memo as it stands."""
    whose = "本群" if group else "你"
    if not text:
        return f"{whose}的备忘录是空的（上限 {limit} 字）"
    return f"📝 {whose}的备忘录（{len(text)}/{limit} 字）\n{text}"


def status(page: Page, memo_chars: int, memo_limit: int, *, scope: ScopeName) -> str:
    """The card that ``/memory`` alone answers."""
    head = f"🧠 {LABEL[scope]}记忆 {page.total}/{page.limit} 条 · 备忘录 {memo_chars}/{memo_limit} 字"
    lines = [_line(i + 1, one) for i, one in enumerate(page.facts)]
    return "\n".join([head, *lines, f"用法：/memory {scope} list｜search 关键词｜delete 编号，更多见 /memory help"])


NOTHING_KEPT: Final = "没有记着任何关于你的事"


def asked_to_forget(held: Holdings, code: str, *, again: bool) -> str:
    """What would be deleted, and how to say that it is meant."""
    head = "确认码不对，或者刚刚有了变化。" if again else ""
    return f"{head}将永久删除你的：{_kept(held)}。不能恢复。\n确定的话请发送 /memory 忘掉我 {code}"


def forgotten(held: Holdings) -> str:
    """The receipt: it was looked again, and nothing is left."""
    return (
        f"已经忘掉：{_kept(held)}。删除后又查了一遍，都没有了。\n"
        "不在其中：群共享记忆（属于群）、主人以前做的备份（轮换时清除）、宿主机器人自己的聊天上下文。"
    )


def _kept(held: Holdings) -> str:
    parts = [
        (held.facts, f"{held.facts} 条记忆"),
        (held.memo, f"{held.memo} 字备忘录"),
        (held.days, f"{held.days} 天聊天记录"),
        (held.profile, "画像"),
        (held.runs, f"{held.runs} 份整理记录"),
        (held.state, "整理进度"),
    ]
    return "、".join(text for there, text in parts if there)


def page_count(total: int) -> int:
    """How many pages a partition has; at least one."""
    return max(-(-total // PAGE_SIZE), 1)


def preview(listed: Listed) -> str:
    """The beginning of a fact on one line."""
    return cut(one_line(listed.fact.content), PREVIEW)


def _line(number: int, listed: Listed) -> str:
    fact = listed.fact
    tags = " ".join(f"#{tag}" for tag in fact.tags.split(",") if tag)
    parts = [f"{number}.", WEIGHT[fact.importance] + preview(listed), tags, fact.day[5:], f"[{listed.short}]"]
    return " ".join(part for part in parts if part)


def _hit(number: int, found: Found) -> str:
    return f"{_line(number, found)} {dots(found.relevance)}"
