"""Everything one demo needs at the same time: folder, script, host, client. Opened, spoken to, restarted, closed."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from filelock import FileLock, Timeout

from amrita_plugin_memory.kernel.errors import Locked, Unavailable

from .checks import Turn
from .folder import BotSettings, Endpoint, child_env, claim, faults, lay_out
from .hostproc import HostFailed, HostProcess, tool_dirs
from .net import free_port, is_taken
from .onebot import OneBotClient, Place
from .script.model import ScriptModel
from .script.reading import Reading
from .script.respond import respond
from .script.rules import Reply
from .traps import explain_silence, last_lines

Progress: TypeAlias = Callable[[str], AbstractContextManager[object]]

REPLY_SECONDS: Final = 90.0
COMMAND_GAP_SECONDS: Final = 1.3  # the host drops commands of one chat that come within RATE_LIMIT=1 s
_PORT_TRIES: Final = 3


def _silent(_title: str) -> AbstractContextManager[object]:
    return nullcontext()


@dataclass(slots=True)
class Stage:
    """One bot folder (an absolute path) with its processes; ``llm`` None means the script answers.

    ``python`` runs the host, so that another environment can be shown; ``prepare`` may add to the folder before it.
    """

    folder: Path
    llm: Endpoint | None = None
    port: int | None = None
    keep: bool = False
    progress: Progress = _silent
    respond: Callable[[Reading], Reply] = respond
    python: str = sys.executable
    prepare: Callable[[Path], None] | None = None
    reply_seconds: float = REPLY_SECONDS
    model: ScriptModel | None = field(default=None, init=False)
    settings: BotSettings | None = field(default=None, init=False)
    host: HostProcess | None = field(default=None, init=False)
    client: OneBotClient | None = field(default=None, init=False)
    _lock: FileLock | None = field(default=None, init=False)
    _last_command: dict[str, float] = field(default_factory=dict[str, float], init=False)

    async def __aenter__(self) -> Stage:
        """Open the stage; what was started is stopped again when a part fails."""
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the stage."""
        await self.close()

    @property
    def log(self) -> Path:
        """The host's log."""
        return self.folder / "logs" / "bot.log"

    @property
    def request_log(self) -> Path:
        """Every request the script received, one JSON object per line."""
        return self.folder / "logs" / "llm.jsonl"

    async def _open(self) -> None:
        self._take_folder()
        if self.port is not None and is_taken(self.port):
            raise Unavailable(f"端口 {self.port} 被别的程序占住了，请换一个，或去掉 --port 让演示自己选。")
        if self.llm is None:
            self.model = ScriptModel(self.request_log, self.respond)
            await self.model.start()
        endpoint = self.model.endpoint if self.model else self.llm
        assert endpoint is not None
        self.settings = BotSettings(self.port or free_port(), endpoint)
        with self.progress("写好机器人文件夹"):
            lay_out(self.folder, self.settings, keep=self.keep)
            if self.prepare is not None:
                await asyncio.to_thread(self.prepare, self.folder)
        self._make_host()
        assert self.host is not None
        with self.progress("迁移数据库（ambot orm upgrade）"):
            await self.host.migrate()
        with self.progress("启动真实的 AmritaBot（ambot run）"):
            await self._start_host()
        with self.progress("接上模拟的 OneBot v11 客户端"):
            await self._connect()

    def _take_folder(self) -> None:
        claim(self.folder)
        self._lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            self._lock.acquire()
        except Timeout as e:
            self._lock = None
            raise Locked(f"另一个演示正在使用 {self.folder}，请先退出它，或用 --dir 换一个位置。") from e

    def _make_host(self) -> None:
        assert self.settings is not None
        dirs = (Path(self.python).parent, *tool_dirs())
        env = child_env(self.settings, os.environ, tool_dirs=dirs)
        self.host = HostProcess(self.folder, env, log=self.log, python=self.python)

    async def _start_host(self) -> None:
        assert self.host is not None
        for left in reversed(range(_PORT_TRIES)):
            try:
                await self.host.start()
            except HostFailed as failure:
                if failure.trap != "port" or self.port is not None or not left:
                    raise
                self._move_to_another_port()
            else:
                return

    def _move_to_another_port(self) -> None:
        assert self.settings is not None
        self.settings = replace(self.settings, port=free_port())
        lay_out(self.folder, self.settings, keep=True)
        self._make_host()

    async def _connect(self) -> None:
        assert self.settings is not None
        if self.client is None:
            self.client = OneBotClient(self.settings.ws_url, self.settings.access_token)
        self.client.url = self.settings.ws_url
        await self.client.connect()

    async def restart(self) -> None:
        """End the bot's process and start it again on the same folder."""
        assert self.host is not None
        assert self.client is not None
        with self.progress("停下机器人"):
            await self.client.close()
            await self.host.stop()
        with self.progress("再次启动机器人"):
            await self._start_host()
            await self._connect()

    async def say(self, place: Place, text: str) -> Turn:
        """Say ``text`` at ``place`` (in a group with a mention, unless it is a command) and wait for the answer."""
        assert self.client is not None
        assert self.host is not None
        is_command = text.startswith("/")
        if is_command:
            await self._keep_the_pace(place)
        began, heard = time.monotonic(), len(self.client.heard)
        requested = len(self.model.requests) if self.model else 0
        await self.client.say(place, text, at=place.is_group and not is_command)
        reply = await self._answer(place, heard)
        seconds = time.monotonic() - began
        if is_command:
            self._last_command[place.address] = time.monotonic()
        await self.host.settle()
        return Turn(
            place,
            text,
            # A command may answer in several messages; they are one reply.
            "\n".join(m.text for m in self.client.heard[heard:] if m.address == place.address) if reply else None,
            tuple(self.model.requests[requested:]) if self.model else (),
            seconds,
            "" if reply else await self.why_silent(),
        )

    async def _answer(self, place: Place, since: int) -> bool:
        assert self.client is not None
        assert self.host is not None
        until = time.monotonic() + self.reply_seconds
        while time.monotonic() < until and self.host.is_running:
            if await self.client.wait(place.address, since=since, within=1):
                return True
        return False

    async def _keep_the_pace(self, place: Place) -> None:
        wait = self._last_command.get(place.address, 0) + COMMAND_GAP_SECONDS - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)

    async def why_silent(self) -> str:
        """The best explanation for a missing answer, in one or more sentences."""
        assert self.host is not None
        dead = await self.host.failure_if_dead()
        if dead is not None:
            return str(dead)
        found = await asyncio.to_thread(self._faults)
        told = explain_silence("\n".join(last_lines(await self.host.log_text(), 40)))
        return "".join([*found, str(told or "")]) or f"{self.reply_seconds:.0f} 秒内没有回复，请看日志 {self.log}。"

    def _faults(self) -> list[str]:
        env, config = self.folder / ".env", self.folder / "config/chat/config.toml"
        return faults(env.read_text("utf-8"), config.read_text("utf-8"))

    async def close(self) -> None:
        """Stop everything that was started; safe to call at any time, and twice."""
        if self.client is not None:
            await self.client.close()
        if self.host is not None:
            await self.host.stop()
        if self.model is not None:
            await self.model.stop()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
