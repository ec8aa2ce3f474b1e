"""The bot folder: what an owner would write by hand, with every trap of the host already avoided.

The texts are pure (`files_of`); only `lay_out` touches the disk. A folder that this demo did not make is never changed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from amrita_plugin_memory.kernel.errors import InvalidInput

from .net import LOOPBACK

MARKER: Final = ".amrita-memory-demo"
LLM_KEY_VARIABLE: Final = "AMRITA_MEMORY_DEMO_LLM_KEY"
TARGET: Final = 10001  # the person of the story, whom the background tidies for
OWNER: Final = 10000  # the superuser; the people of the story are ordinary users
_OURS: Final = ("config", "data", "logs", "plugins")
_FOREIGN_PREFIXES: Final = (
    "ALEMBIC_", "AMBOT_", "AMRITA_", "EMBED_", "EMBEDDING_", "LOCALSTORE_", "ONEBOT_", "REEMBED_", "SQLALCHEMY_",
    "VECTOR_DB_", "WEBUI_",
)  # fmt: skip
_FOREIGN_NAMES: Final = (
    "COMMAND_SEP", "COMMAND_START", "DRIVER", "ENVIRONMENT", "HOST", "LOG_LEVEL", "NICKNAME", "PORT", "RATE_LIMIT",
    "SUPERUSERS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible chat endpoint; ``key`` reaches the host by the environment and no file."""

    base_url: str
    key: str = field(repr=False)
    model: str


@dataclass(frozen=True, slots=True)
class BotSettings:
    """What differs from one demo to the next."""

    port: int
    llm: Endpoint
    embedding: str = "embedded"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12), repr=False)
    access_token: str = field(default_factory=lambda: secrets.token_urlsafe(18), repr=False)
    extra_env: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def ws_url(self) -> str:
        """Where a OneBot v11 implementation connects (reverse WebSocket)."""
        return f"ws://{LOOPBACK}:{self.port}/onebot/v11/ws"

    @property
    def web_url(self) -> str:
        """The host's web page."""
        return f"http://{LOOPBACK}:{self.port}/"


def files_of(settings: BotSettings) -> dict[str, str]:
    """Every file of the bot folder, by its path below the folder."""
    preset = {
        "model": settings.llm.model,
        "name": "default",
        "base_url": settings.llm.base_url,
        "api_key": f"${{{LLM_KEY_VARIABLE}}}",
        "protocol": "__main__",
        "config": {"stream": False},
    }
    return {
        "pyproject.toml": _PYPROJECT,
        ".env": "".join(f"{name}={value}\n" for name, value in env_of(settings).items()),
        "config/chat/config.toml": _CHAT_CONFIG,
        "config/amrita_plugin_memory/config.toml": plugin_config(TARGET),
        "config/chat/models/default.json": json.dumps(preset, ensure_ascii=False, indent=2) + "\n",
        "config/chat/private_prompts/default.txt": "你是小忆，一个记性很好的聊天伙伴，用简短的中文回答。\n",
        "config/chat/group_prompts/default.txt": "你是小忆，一个记性很好的群聊伙伴，用简短的中文回答。\n",
    }


def env_of(settings: BotSettings) -> dict[str, str]:
    """The `.env` of the bot: each line answers one trap of the host."""
    return {
        "ENVIRONMENT": "prod",
        "HOST": LOOPBACK,
        "PORT": str(settings.port),
        "LOG_LEVEL": "INFO",
        "COMMAND_START": '["/"]',
        "SUPERUSERS": f'["{OWNER}"]',
        "LOCALSTORE_USE_CWD": "true",
        "ALEMBIC_STARTUP_CHECK": "true",
        "RATE_LIMIT": "1",
        "WEBUI_PASSWORD": settings.password,
        "ONEBOT_ACCESS_TOKEN": settings.access_token,
        "EMBEDDING_PROCTOL": settings.embedding,
        **settings.extra_env,
    }


def plugin_config(account: int, minutes: float = 30) -> str:
    """`config.toml` with the background switched on for one person."""
    return (
        f'[subconscious]\nenabled = true\ntarget_user_id = "{account}"\nrethink_base_delay_minutes = {minutes:g}\n'
        "rethink_penalty_multiplier = 1.0\n"
    )


def lay_out(folder: Path, settings: BotSettings, *, keep: bool = False) -> None:
    """Write the folder; with ``keep`` what the bot stored there stays.

    Raises:
        InvalidInput: the folder holds something this demo did not make.

    """
    claim(folder)
    if not keep:
        for name in _OURS:
            shutil.rmtree(folder / name, ignore_errors=True)
    for name, text in files_of(settings).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if name == ".env":
            path.chmod(0o600)


def claim(folder: Path) -> None:
    """Make the folder and put our marker into it.

    Raises:
        InvalidInput: it holds something this demo did not make.

    """
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} 不是文件夹，请用 --dir 换一个位置。")
    if folder.is_dir() and not (folder / MARKER).exists() and any(folder.iterdir()):
        raise InvalidInput(f"文件夹 {folder} 里已有别的内容，演示不会改动它；请用 --dir 换一个空文件夹。")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text("这个文件夹由 amrita-memory demo 生成，可以整个删除。\n", "utf-8")


def child_env(settings: BotSettings, parent: Mapping[str, str], *, tool_dirs: tuple[Path, ...]) -> dict[str, str]:
    """The environment of the bot's processes.

    Names that the host would read in place of the `.env` are left out, the given folders lead the PATH (the host
    refuses to start where it finds no `uv`), and loopback addresses never go through a proxy.
    """
    kept = {name: value for name, value in parent.items() if not _is_foreign(name.upper())}
    path = os.pathsep.join([*map(str, tool_dirs), kept.get("PATH", os.defpath)])
    no_proxy = ",".join(filter(None, [kept.get("NO_PROXY") or kept.get("no_proxy"), LOOPBACK, "localhost"]))
    return {
        **kept,
        "PATH": path,
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
        LLM_KEY_VARIABLE: settings.llm.key,
    }


def _is_foreign(name: str) -> bool:
    return name in _FOREIGN_NAMES or name.startswith(_FOREIGN_PREFIXES)


def faults(env_text: str, chat_config: str) -> list[str]:
    """What in these two files would make the bot refuse or stay silent, one sentence each."""
    env = dict(line.split("=", 1) for line in env_text.splitlines() if "=" in line and not line.startswith("#"))
    found: list[str] = []
    if env.get("WEBUI_PASSWORD", "admin123").strip() in ("", "admin123"):
        found.append("WEBUI_PASSWORD 还是默认值，网页和接口会全部拒绝（HTTP 423）：请在 .env 里设一个自己的密码。")
    rate = env.get("RATE_LIMIT", "5").strip()
    if not rate.isdigit() or int(rate) != 1:
        found.append(f"RATE_LIMIT={rate} 会让连续的命令被悄悄丢掉（0 会报错）：请在 .env 里写 RATE_LIMIT=1。")
    try:
        enabled = tomllib.loads(chat_config).get("enable", False)
    except tomllib.TOMLDecodeError:
        found.append("config/chat/config.toml 不是有效的 TOML：请改正，或删掉它让机器人重新生成。")
    else:
        if enabled is not True:
            found.append("聊天没有开启，机器人不会回话：请在 config/chat/config.toml 里写 enable = true。")
    return found


_PYPROJECT: Final = """\
[project]
name = "amrita-memory-demo"
version = "0.0.0"
description = "amrita-memory demo 生成的机器人"
requires-python = ">=3.11"

[tool.amrita]
plugins = [
    "amrita.plugins.chat",
    "amrita.plugins.manager",
    "amrita.plugins.webui",
    "amrita_plugin_memory",
]

[tool.nonebot]
plugins = ["nonebot_plugin_orm"]
"""

# nature_chat_style cuts an answer into several messages; the story wants one message per answer.
_CHAT_CONFIG: Final = """\
enable = true

[core]

[function]
nature_chat_style = false
"""
