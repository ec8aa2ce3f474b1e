"""What the host's log says when it dies or stays silent, told as one sentence and what to do.

Pure: text in, diagnosis out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Trap:
    """A known way in which the host fails: what it is, and the way out."""

    name: str
    pattern: re.Pattern[str]
    sentence: str
    fix: str

    def __str__(self) -> str:
        return f"{self.sentence}{self.fix}"


def _trap(name: str, pattern: str, *, sentence: str, fix: str) -> Trap:
    return Trap(name, re.compile(pattern), sentence, fix)


# Order matters: causes come before the later messages that only follow from them.
TRAPS: Final = (
    _trap(
        "uv",
        r"uv is not available",
        sentence="机器人找不到 uv 程序，所以拒绝启动。",
        fix="请运行 pip install uv，并把它所在的文件夹放进 PATH。",
    ),
    _trap(
        "ambot",
        r"No module named '?ambot_inlinectl",
        sentence="没有安装 ambot 命令（ambot-inlinectl）。",
        fix="请用 uv run amrita-memory demo 启动，或运行 pip install ambot-inlinectl。",
    ),
    _trap(
        "pyproject",
        r"PyprojectNotFoundError|未找到 pyproject\.toml",
        sentence="机器人文件夹里没有 pyproject.toml。",
        fix="请删掉演示文件夹后重来，或用 --dir 换一个位置。",
    ),
    _trap(
        "port",
        r"(?i)address already in use|Errno (?:48|98)\b|WinError 10048",
        sentence="机器人要用的端口被别的程序占住了。",
        fix="请再运行一次，演示会另选端口；或用 --port 指定一个空闲端口。",
    ),
    _trap(
        "migration",
        r"目标数据库未更新到最新迁移|Target database is not up to date",
        sentence="数据库还没有迁移到最新版本。",
        fix="请在机器人文件夹里运行 ambot orm upgrade（不要用 nb orm，它不加载 Amrita 插件）。",
    ),
    _trap(
        "revision",
        r"Can't locate revision identified by",
        sentence="数据库里记着一个已经不存在的迁移版本。",
        fix="请删掉演示文件夹里的 data 后重来。",
    ),
    _trap(
        "plugin",
        r"Failed to (?:load|import) (?:plugin )?[\"']?amrita_plugin_memory\b",
        sentence="记忆插件没有加载成功，机器人会在没有记忆的情况下运行。",
        fix="请看下面日志里的原因。",
    ),
    _trap(
        "plugin-start",
        r"\[Memory\] 记忆插件没有启动",
        sentence="记忆插件加载了，但没有启动成功，机器人没有记忆。",
        fix="请看下面日志里的原因。",
    ),
    _trap(
        "module",
        r"ModuleNotFoundError: No module named",
        sentence="缺少一个依赖包。",
        fix="请用 uv run amrita-memory demo 启动，它会把依赖装齐。",
    ),
    _trap(
        "password",
        r"检测到默认密码|admin123",
        sentence="WEBUI_PASSWORD 还是默认值，网页和接口会全部拒绝。",
        fix="请在 .env 里设一个自己的 WEBUI_PASSWORD。",
    ),
    _trap(
        "rate",
        r"ZeroDivisionError",
        sentence="RATE_LIMIT=0 会让机器人在处理命令时报错。",
        fix="请在 .env 里写 RATE_LIMIT=1。",
    ),
    _trap(
        "model",
        r"No more preset available",
        sentence="机器人连不上聊天模型，或模型拒绝了请求。",
        fix="请检查 --llm-base-url、--llm-key 和 --llm-model；真正的原因在它前面的 WARNING 行里。",
    ),
    _trap(
        "config",
        r"\.env 有误|配置文件 \S+ 有误",
        sentence="有一项设置不能用。",
        fix="请看日志里说明是哪一项的那一行。",
    ),
)  # fmt: skip


# These kill nothing; they explain why a message got no answer.
SILENCERS: Final = (
    _trap(
        "dropped",
        r"running is cancelled",
        sentence="机器人的限速（RATE_LIMIT）把这条命令悄悄丢掉了。",
        fix="请隔一两秒再发。",
    ),
    next(trap for trap in TRAPS if trap.name == "model"),
)

# With these the bot runs, but without what this project is about.
CRIPPLING: Final = ("plugin", "plugin-start")


def diagnose(log: str, names: Collection[str] | None = None) -> Trap | None:
    """The first known trap (of these names) that this log shows; None when it shows none."""
    wanted = (trap for trap in TRAPS if names is None or trap.name in names)
    return next((trap for trap in wanted if trap.pattern.search(log)), None)


def explain_silence(log: str) -> Trap | None:
    """Why the last message in this log got no answer, as far as the log tells."""
    return next((trap for trap in SILENCERS if trap.pattern.search(log)), None)


def cause_lines(log: str, trap: Trap, count: int = 15) -> list[str]:
    """The line that shows the trap and the end of what belongs to it (a traceback), up to the next log line."""
    plain = _COLOUR.sub("", log)
    found = trap.pattern.search(plain)
    if found is None:
        return []
    first, *rest = plain[plain.rfind("\n", 0, found.start()) + 1 :].splitlines()
    own = list(itertools.takewhile(lambda line: not _STAMPED.match(line), rest))
    return [first, *last_lines("\n".join(own), count)]


def last_lines(log: str, count: int = 15) -> list[str]:
    """The last lines worth reading, without colours and blank lines."""
    plain = _COLOUR.sub("", log)
    return [line.rstrip() for line in plain.splitlines() if line.strip()][-count:]


_STAMPED: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\d\d-\d\d \d\d:\d\d:\d\d")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
