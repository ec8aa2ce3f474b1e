"""The real AmritaBot host as a child process: migrate, start, wait until it serves, read its log, stop it.

Every process runs under `keeper`, in a process group of its own, with an empty standard input and its output in a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from amrita_plugin_memory.kernel.errors import Unavailable

from .traps import CRIPPLING, cause_lines, diagnose, last_lines

READY: Final = "Application startup complete"
PATIENCE: Final = 420.0  # seconds; a busy machine of two cores was seen to need 115
_POLL_SECONDS: Final = 0.2
_STOP_SECONDS: Final = 12.0


class HostFailed(Unavailable):
    """A command of the host ended or did not come up; ``log_lines`` are the last lines it wrote."""

    def __init__(self, sentence: str, *, log_lines: list[str], trap: str | None = None) -> None:
        super().__init__(sentence)
        self.log_lines = log_lines
        self.trap = trap


def tool_dirs() -> tuple[Path, ...]:
    """Folders that must lead the PATH of the host: this interpreter's programs, and wherever `uv` really is."""
    import uv  # the host depends on it; where it is missing the trap table says what to do

    return (Path(sys.executable).parent, Path(uv.find_uv_bin()).parent)


class HostProcess:
    """One bot folder and the process that serves it; may be started again after it was stopped."""

    def __init__(self, folder: Path, env: Mapping[str, str], *, log: Path, python: str = sys.executable) -> None:
        self._folder = folder
        self._python = python
        self._env = dict(env)
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._offset = 0

    @property
    def is_running(self) -> bool:
        """True between a start and the end of the process."""
        return self._process is not None and self._process.returncode is None

    async def migrate(self, *, within: float = PATIENCE) -> None:
        """Bring the database to the newest revision (`ambot orm upgrade`).

        Raises:
            HostFailed: it failed or took longer than ``within`` seconds.

        """
        await self._spawn("orm", "upgrade")
        await self._until_ended(within)
        code = self._process.returncode if self._process else None
        if code != 0:
            raise await self._failure(f"数据库迁移失败（退出码 {code}）。")

    async def start(self, *, within: float = PATIENCE) -> None:
        """Start the bot and return when it serves, with the plugin at work.

        Raises:
            HostFailed: it ended, did not serve within ``within`` seconds, or runs without the plugin.

        """
        await self._spawn("run")
        try:
            async with asyncio.timeout(within):
                while READY not in await self.log_text():
                    if not self.is_running:
                        raise await self._failure("机器人在启动时退出了。")
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            failure = await self._failure(f"机器人 {within:.0f} 秒内没有启动完成。")
            await self.stop()
            raise failure from None
        trap = diagnose(await self.log_text(), CRIPPLING)
        if trap is not None:
            lines = cause_lines(await self.log_text(), trap)
            await self.stop()
            raise HostFailed(str(trap), log_lines=lines, trap=trap.name)

    async def stop(self) -> None:
        """End the process group: politely, then by force. Does nothing when it has ended."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        _signal_group(process, "SIGTERM")
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            _signal_group(process, "SIGKILL")
            await process.wait()
        finally:
            if process.stdin is not None:
                process.stdin.close()

    async def log_text(self) -> str:
        """What the current (or last) command wrote."""
        return await asyncio.to_thread(self._read_log)

    async def settle(self, *, quiet: float = 0.3, within: float = 3.0) -> None:
        """Wait until the host has been quiet: it still stores a turn after it has answered."""
        until = asyncio.get_running_loop().time() + within
        before = -1
        while asyncio.get_running_loop().time() < until:
            size = (await asyncio.to_thread(self._log.stat)).st_size
            if size == before:
                return
            before = size
            await asyncio.sleep(quiet)

    async def failure_if_dead(self) -> HostFailed | None:
        """The reason, when the process has ended by itself."""
        return None if self.is_running else await self._failure("机器人进程已经退出。")

    async def _spawn(self, *args: str) -> None:
        if self.is_running:
            raise RuntimeError("the host is running already")
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as out:
            self._offset = out.tell()
            self._process = await asyncio.create_subprocess_exec(
                *(self._python, "-m", "amrita_plugin_memory.demo.keeper"),
                *(self._python, "-m", "ambot_inlinectl", *args),
                cwd=self._folder,
                env=self._env,
                stdin=asyncio.subprocess.PIPE,  # closes when we die: the keeper then ends the host
                stdout=out,
                stderr=out,
                start_new_session=os.name == "posix",
            )

    async def _until_ended(self, within: float) -> None:
        if self._process is None:
            return
        try:
            await asyncio.wait_for(self._process.wait(), within)
        except TimeoutError:
            failure = await self._failure(f"命令 {within:.0f} 秒内没有完成。")
            raise failure from None
        finally:
            await self.stop()

    async def _failure(self, what: str) -> HostFailed:
        log = await self.log_text()
        trap = diagnose(log)
        sentence = f"{what}{trap}" if trap else f"{what}完整日志在 {self._log}。"
        return HostFailed(sentence, log_lines=last_lines(log), trap=trap.name if trap else None)

    def _read_log(self) -> str:
        try:
            with self._log.open("rb") as log:
                log.seek(self._offset)
                return log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""


def _signal_group(process: asyncio.subprocess.Process, name: str) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, getattr(signal, name))
        else:
            process.terminate()
