"""The story, as data: what is said, where, and what must have happened then.

The name is known to the bot from the memory only: the simulated client's nickname is another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from .checks import (
    Check,
    called,
    memo_in_prompt,
    place_never_saw,
    recall_omits,
    recalled,
    replied,
    reply_omits,
    request_omits,
)
from .folder import TARGET
from .onebot import Place

ME: Final = Place(TARGET)
IN_GROUP: Final = Place(TARGET, 20001)
GROUP_OWNER: Final = Place(10002, 20001, role="owner")


@dataclass(frozen=True, slots=True)
class Step:
    """One step: ``say`` is sent from ``place`` (``{word}`` is what an earlier step captured).

    ``capture`` takes words out of the reply: name → pattern with one group.
    """

    title: str
    say: str = ""
    place: Place = ME
    checks: tuple[Check, ...] = ()
    capture: Mapping[str, str] = field(default_factory=dict[str, str])
    action: Literal["say", "restart", "silence"] = "say"

    def captured_from(self, reply: str) -> dict[str, str]:
        """The words of the reply that later steps need; a pattern that does not match gives nothing."""
        found = {name: re.search(pattern, reply) for name, pattern in self.capture.items()}
        return {name: match[1] for name, match in found.items() if match}


def _id_of(word: str) -> str:
    """The short id that a list prints at the end of the line of this memory."""
    return rf"{word}[^\n]*\[([0-9A-Za-z-]+)\]"


STORY: Final = (
    Step(
        "告诉它名字：写进记忆和备忘录",
        "我叫小林",
        checks=(called("write_memory", "小林", scope="user"), called("update_memo", "小林"), replied("记下了")),
    ),
    Step(
        "告诉它一件要紧的事",
        "我对花生过敏",
        checks=(called("write_memory", "花生", scope="user"), memo_in_prompt("小林"), replied("记下了")),
    ),
    Step(
        "告诉它一个喜好",
        "我喜欢喝乌龙茶",
        checks=(called("write_memory", "乌龙茶", scope="user"), replied("记下了")),
    ),
    Step("机器人重启", action="restart"),
    Step("清掉对话记录：从现在起，只剩记忆", "/session forget", checks=(replied("已清除"),)),
    Step(
        "重启以后，它还查得到",
        "我对什么过敏？",
        checks=(recalled("花生"), replied("花生")),
    ),
    Step(
        "名字不用查，备忘录每轮都在提示词里",
        "我叫什么？",
        checks=(memo_in_prompt("小林"), replied("小林")),
    ),
    Step(
        "看看它记了什么",
        "/memory user list",
        checks=(replied("小林", "花生", "乌龙茶"),),
        capture={"tea": _id_of("乌龙茶")},
    ),
    Step("搜一搜", "/memory user search 花生", checks=(replied("花生"),)),
    Step("删掉一条", "/memory user delete {tea}", checks=(replied("删除"),)),
    Step(
        "删掉的不再出现在列表里",
        "/memory user list",
        checks=(replied("小林", "花生"), reply_omits("乌龙茶")),
    ),
    Step("也再查不到", "我喜欢喝什么？", checks=(recall_omits("乌龙茶"), reply_omits("乌龙茶"))),
    Step(
        "换到群里：群记忆是另一本",
        "本群每周五发版",
        IN_GROUP,
        checks=(called("write_memory", "每周五", scope="group"), request_omits("小林", "花生"), replied("记下了")),
    ),
    Step(
        "群里问名字：私人备忘录没有跟进来",
        "群里有人知道我叫什么吗？",
        IN_GROUP,
        checks=(request_omits("小林", "花生"), recall_omits("小林"), reply_omits("小林", "花生")),
    ),
    Step(
        "群里发 /memory user list：内容不会贴到群里",
        "/memory user list",
        IN_GROUP,
        checks=(replied("私聊"), place_never_saw(IN_GROUP, "小林", "花生", "乌龙茶")),
    ),
    Step(
        "群记忆大家都看得到",
        "/memory group list",
        IN_GROUP,
        checks=(replied("每周五发版"),),
        capture={"release": _id_of("每周五")},
    ),
    Step("普通成员不能删群记忆", "/memory group delete {release}", IN_GROUP, checks=(replied("无权"),)),
    Step("群主可以", "/memory group delete {release}", GROUP_OWNER, checks=(replied("删除"),)),
    Step("群记忆里没有它了", "/memory group list", IN_GROUP, checks=(replied("暂无"), reply_omits("每周五发版"))),
    Step(
        "回到私聊：群里的话没有混进来，自己的还在",
        "/memory user list",
        checks=(replied("小林", "花生"), reply_omits("每周五")),
    ),
    Step("又说起喜好", "我喜欢喝龙井茶", checks=(called("write_memory", "龙井"), replied("记下了"))),
    Step("换个说法再说一遍", "我喜欢喝龙井绿茶", checks=(called("write_memory", "龙井绿茶"), replied("记下了"))),
    Step("沉默：潜意识开始整理（平时等半小时，演示里改成几秒）", "记住：今天聊了茶", action="silence"),
    Step(
        "整理以后，重复的只剩一条",
        "/memory user list",
        checks=(replied("★用户喜欢喝龙井绿茶"), reply_omits("用户喜欢喝龙井茶")),
    ),
    Step("清掉对话记录，再问一次", "/session forget", checks=(replied("已清除"),)),
    Step("下一次聊天用得上整理的结果", "我喜欢喝什么？", checks=(recalled("龙井绿茶"), replied("龙井绿茶"))),
    Step(
        "忘掉我：先说会删掉什么",
        "/memory 忘掉我",
        checks=(replied("将永久删除", "备忘录", "聊天记录"),),
        capture={"code": r"忘掉我 ([0-9a-f]{4})"},
    ),
    Step("确认以后，删掉一切，再查一遍，给回执", "/memory 忘掉我 {code}", checks=(replied("已经忘掉", "都没有了"),)),
    Step("真的什么都不剩", "/memory user list", checks=(replied("暂无"), reply_omits("小林", "花生", "龙井"))),
)  # fmt: skip
