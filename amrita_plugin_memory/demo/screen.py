"""What the terminal shows. Nothing here decides; text from outside is never read as markup."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.panel import Panel
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from .checks import Check, Finding, Turn
from .folder import BotSettings
from .hostproc import HostFailed
from .story import Step


@dataclass(slots=True)
class Screen:
    """One terminal."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))

    @contextmanager
    def progress(self, title: str) -> Generator[None]:
        """A spinner with the running time while the body runs; afterwards one line with the time it took."""
        began = time.monotonic()
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        try:
            with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as bar:
                bar.add_task(title, total=None)
                yield
        except BaseException:
            self._line("✗ ", f"{title}  {time.monotonic() - began:.1f} 秒", style="red")
            raise
        self._line("✓ ", f"{title}  {time.monotonic() - began:.1f} 秒", style="green")

    def opening(self, *, scripted: bool) -> None:
        """What this is, and what it is not."""
        who = (
            "回答来自一个照表行事的脚本，不是模型：它只引用提示词和工具结果里真有的内容。"
            if scripted
            else "回答来自你指定的真实模型。它的话不固定，所以不演故事，直接进入对话。"
        )
        needs = "不需要密钥，也不连外网。" if scripted else "密钥只经环境变量传给机器人（它出错时可能写进自己的日志）。"
        body = f"真实的 AmritaBot，模拟的 QQ 客户端，内嵌的向量模型；{needs}\n{who}"
        self.console.print(
            Panel(Text(body), title="amrita-memory demo", border_style="cyan", expand=False), soft_wrap=False
        )

    def place(self, settings: BotSettings, folder: str) -> None:
        """Where the bot can be looked at."""
        self._line("  文件夹  ", folder, style="dim")
        self._line("  网页    ", f"{settings.web_url}  用户名 admin  密码 {settings.password}", style="dim")

    def step(self, number: int, total: int, step: Step) -> None:
        """The heading of a step."""
        self.console.print()
        self._line(f"[{number}/{total}] ", step.title, style="bold cyan")

    def turn(self, turn: Turn, *, typed: bool = False) -> None:
        """One exchange: what was said (unless it was just typed here), the tools in between, the answer."""
        where = f"群{turn.place.group} {turn.place.user}" if turn.place.is_group else f"私聊 {turn.place.user}"
        if not typed:
            self._line(f"  {where}› ", turn.text, style="yellow")
        for call in turn.calls:
            arguments = "，".join(f"{name}={value}" for name, value in call.arguments.items())
            self._line("    ⚙ ", f"{call.tool}({arguments})", style="magenta dim")
        reply = turn.reply if turn.reply is not None else f"（没有回复）{turn.silence}"
        for i, line in enumerate(reply.splitlines() or [""]):
            self._line("  机器人‹ " if i == 0 else "          ", line, style="green")
        self._line("    ", f"{turn.seconds:.1f} 秒", style="dim")

    def finding(self, check: Check, finding: Finding) -> None:
        """The outcome of one check with its evidence."""
        mark, style = ("✓", "green") if finding.ok else ("✗", "bold red")
        self._line(f"    {mark} ", check.claim, style=style)
        self._line("      ", finding.evidence, style="dim")

    def verdict(self, outcomes: Iterable[tuple[Step, bool]]) -> None:
        """The table at the end."""
        table = Table(title="故事", show_header=False, box=None)
        rows = list(outcomes)
        for step, ok in rows:
            table.add_row(Text("✓" if ok else "✗", style="green" if ok else "bold red"), Text(step.title))
        bad = sum(not ok for _, ok in rows)
        self.console.print()
        self.console.print(table)
        words = f"全部 {len(rows)} 步都真的发生了。" if not bad else f"{len(rows)} 步里有 {bad} 步没有发生。"
        self._line("", words, style="bold red" if bad else "bold green")

    def failure(self, error: Exception) -> None:
        """One sentence, and the host's last lines when it died."""
        self._line("✗ ", str(error), style="bold red")
        if isinstance(error, HostFailed):
            self.note("机器人日志里的有关几行：")
            for line in error.log_lines:
                self._line("  │ ", line, style="dim")

    def note(self, text: str) -> None:
        """A quiet remark."""
        self._line("", text, style="dim")

    def _line(self, lead: str, text: str, *, style: str) -> None:
        self.console.print(Text(lead, style=style) + Text(text, style="dim" if style.endswith("dim") else ""))
