"""What a command prints: data on stdout, progress and logs on stderr, one JSON envelope when asked, an exit code."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from amrita_plugin_memory.kernel.errors import (
    AmritaMemoryError,
    ConfigInvalid,
    InvalidInput,
    Locked,
    SpaceMismatch,
)
from amrita_plugin_memory.ops.upkeep.progress import Progress

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
PARTIAL: Final = 3
ACTION: Final = 4
LOCKED: Final = 11
INTERRUPTED: Final = 130


@dataclass(slots=True)
class Output:
    """One command's way to its reader. ``json`` prints an envelope, ``file`` gets it instead of stdout."""

    json: bool = False
    file: Path | None = None
    _shown: Any = field(default=None, init=False)
    _told: float = field(default=-1.0, init=False)

    @property
    def machine(self) -> bool:
        """True when a program reads."""
        return self.json or self.file is not None

    def finish(self, data: dict[str, Any], text: str, *, code: int = OK) -> NoReturn:
        """Print the result and end the command."""
        self.close()
        if self.machine:
            self._write({"ok": code in (OK, PARTIAL), "code": code, "data": data})
        elif text:
            sys.stdout.write(text.rstrip("\n") + "\n")
        sys.stdout.flush()
        raise SystemExit(code)

    def fail(self, sentence: str, *, code: int) -> NoReturn:
        """Say why it did not work and end the command."""
        self.close()
        if self.machine:
            self._write({"ok": False, "code": code, "error": sentence})
        sys.stderr.write(sentence + "\n")
        raise SystemExit(code)

    def say(self, sentence: str) -> None:
        """A line for a person, on stderr."""
        if not self.machine:
            sys.stderr.write(sentence + "\n")

    def report(self, progress: Progress) -> None:
        """Show how far a job is: a bar on a terminal, now and then a line otherwise, NDJSON for a program."""
        if self.machine:
            sys.stderr.write(json.dumps({"progress": asdict(progress)}) + "\n")
        elif sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
            self._bar(progress)
        elif progress.done == progress.total or progress.done - self._told >= progress.total / 10:
            self._told = progress.done
            sys.stderr.write(_line(progress) + "\n")

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self._shown is not None:
            self._shown[0].stop()
            self._shown = None

    def _bar(self, progress: Progress) -> None:
        if self._shown is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[x]}"),
            )
            bar = Bar(*columns, console=Console(stderr=True), transient=True)
            bar.start()
            self._shown = (bar, bar.add_task("处理中", total=progress.total, x=""))
        bar, task = self._shown
        bar.update(task, completed=progress.done, total=progress.total, x=_pace(progress))

    def _write(self, envelope: dict[str, Any]) -> None:
        text = json.dumps(envelope, ensure_ascii=False, default=str)
        if self.file is None:
            sys.stdout.write(text + "\n")
            return
        try:
            self.file.write_text(text + "\n", "utf-8")
        except OSError:
            sys.stdout.write(text + "\n")  # the result of work that was done must not be lost with the place for it
            sys.stderr.write(f"写不进 {self.file}，结果已输出到标准输出，请检查路径和权限\n")


def _line(progress: Progress) -> str:
    return f"  {progress.done}/{progress.total} {_pace(progress)}".rstrip()


def _pace(progress: Progress) -> str:
    rate = f"{progress.rate:.0f} 条/秒" if progress.rate else ""
    left = f"，还需约 {duration(progress.remaining)}" if progress.remaining else ""
    return rate + left


def duration(seconds: float) -> str:
    """``3 分 20 秒``."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} 秒"
    if whole < 3600:
        return f"{whole // 60} 分 {whole % 60} 秒"
    return f"{whole // 3600} 小时 {whole % 3600 // 60} 分"


def guarded(output: Output, body: Callable[[], None]) -> None:
    """Run a command's body and turn what stops it into a sentence and an exit code."""
    _logs_to_stderr()
    try:
        body()
    except KeyboardInterrupt:
        output.fail("已中断，没有丢失数据；再次运行会接着做", code=INTERRUPTED)
    except AmritaMemoryError as e:
        output.fail(str(e), code=code_of(e))
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(FAILED) from None


def code_of(error: AmritaMemoryError) -> int:
    """The exit code of an error."""
    if isinstance(error, Locked):
        return LOCKED
    if isinstance(error, InvalidInput | ConfigInvalid):
        return USAGE
    return ACTION if isinstance(error, SpaceMismatch) else FAILED


def _logs_to_stderr() -> None:
    logger = logging.getLogger("amrita_memory")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        handler.setLevel(logging.WARNING)
        logger.addHandler(handler)
