"""What an owner trips over, one check a function: how it is, and what mends it. Reads files, changes nothing.

The traps are those of the host as it is met in practice: see the document on installing.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from amrita_plugin_memory.settings import FileSettings

from .folder import BotFolder, database_file

Level: TypeAlias = Literal["ok", "warn", "fail"]
_LEAST_FREE: Final = 200 << 20  # bytes
_PACKAGE: Final = "amrita_plugin_memory"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``mend`` is what to do, empty when it is well."""

    name: str
    level: Level
    say: str
    mend: str = ""


def find_all(folder: BotFolder) -> Iterator[Finding]:
    """Every check that needs only files, in the order an owner would go through them."""
    yield _python()
    yield _uv()
    yield from _project(folder)
    yield _env(folder)
    yield _data(folder)
    yield _space(folder)
    yield from _host(folder)
    yield from _chat(folder)
    yield _database(folder)
    yield from _l3(folder.file)


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Finding("Python", "ok", version)
    return Finding("Python", "fail", f"{version} 不在支持范围", "请改用 Python 3.11–3.13")


def _uv() -> Finding:
    if shutil.which("uv", path=f"{os.environ.get('PATH', '')}{os.pathsep}{Path(sys.executable).parent}") is None:
        return Finding(
            "uv", "fail", "PATH 里没有 uv，ambot 和 WebUI 都会启动失败", "请运行 pip install uv，或激活虚拟环境后再启动"
        )
    if shutil.which("uv") is None:
        return Finding("uv", "warn", "uv 在虚拟环境里，但不在 PATH", "请先激活虚拟环境，或用 uv run ambot run 启动")
    return Finding("uv", "ok", "找得到")


def _project(folder: BotFolder) -> Iterator[Finding]:
    path = next(
        (p / "pyproject.toml" for p in (folder.root, *folder.root.parents) if (p / "pyproject.toml").is_file()), None
    )
    if path is None:
        yield Finding(
            "pyproject.toml", "fail", "机器人目录里没有", "ambot 启动必需；请在机器人目录运行，或用 --bot 指定它"
        )
        return
    data = _toml(path)
    plugins = _at(data, "tool", "amrita", "plugins")
    listed = isinstance(plugins, list) and _PACKAGE in plugins
    if listed or (folder.root / "plugins" / _PACKAGE).is_dir():
        yield Finding("插件列表", "ok", "[tool.amrita] plugins 里有本插件")
    else:
        yield Finding("插件列表", "fail", "[tool.amrita] plugins 里没有本插件", f"请运行 ambot plugin add {_PACKAGE}")


def _env(folder: BotFolder) -> Finding:
    if not folder.env_files:
        return Finding(
            ".env", "warn", "没有 .env，全部用默认值", "请在机器人目录写 .env，至少写 LOCALSTORE_USE_CWD=true"
        )
    return Finding(".env", "ok", "、".join(path.name for path in folder.env_files))


def _data(folder: BotFolder) -> Finding:
    place = folder.data_dir
    while not place.exists() and place != place.parent:
        place = place.parent
    if not os.access(place, os.W_OK):
        return Finding("数据目录", "fail", f"{folder.data_dir} 不能写入", "请把目录的所有者改为运行机器人的用户")
    if not folder.host.localstore_use_cwd and folder.host.localstore_data_dir is None:
        return Finding(
            "数据目录", "warn", f"{folder.data_dir}（在用户目录下）", "想放在机器人目录里，请写 LOCALSTORE_USE_CWD=true"
        )
    return Finding("数据目录", "ok", str(folder.data_dir))


def _space(folder: BotFolder) -> Finding:
    place = folder.data_dir
    while not place.exists() and place != place.parent:
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < _LEAST_FREE:
        return Finding("磁盘", "fail", f"只剩 {free >> 20} MB", "请清理磁盘；备份和重建都需要空间")
    return Finding("磁盘", "ok", f"剩余 {free >> 30} GB")


def _host(folder: BotFolder) -> Iterator[Finding]:
    host = folder.host
    if host.rate_limit <= 0:
        yield Finding("RATE_LIMIT", "fail", "为 0 时宿主会出错（除以零）", "请设 RATE_LIMIT=1")
    elif host.rate_limit >= 5:
        yield Finding(
            "RATE_LIMIT", "warn", f"{host.rate_limit:g} 秒内的第二条命令会被默默丢弃", "嫌慢请设 RATE_LIMIT=1"
        )
    if not host.superusers:
        yield Finding("SUPERUSERS", "warn", "没有设置主人", '请在 .env 写 SUPERUSERS=["你的QQ号"]')
    if host.webui_enable and host.webui_password in ("", "admin123"):
        yield Finding(
            "WEBUI_PASSWORD", "warn", "还是默认值，WebUI 会拒绝一切请求（423）", "请在 .env 写 WEBUI_PASSWORD=…"
        )


def _chat(folder: BotFolder) -> Iterator[Finding]:
    chat = _config_base(folder) / "chat"
    data = _toml(chat / "config.toml")
    if not data.get("enable"):
        yield Finding(
            "聊天",
            "fail",
            "聊天功能没有打开（默认关闭），机器人不会回话",
            f"请在 {chat / 'config.toml'} 写 enable = true",
        )
    else:
        yield Finding("聊天", "ok", "已打开")
    if _at(data, "llm", "tools") is not None and "core" not in data:
        yield Finding(
            "聊天", "warn", "写了 [llm.tools] 而没有 [core]，宿主会误判为旧配置", "请在同一文件里加一行 [core]"
        )
    models = list((chat / "models").glob("*.json")) if (chat / "models").is_dir() else []
    if not models:
        yield Finding("模型预设", "fail", "没有聊天模型", f"请在 {chat / 'models'} 放一个模型预设（json）")


def _database(folder: BotFolder) -> Finding:
    from .database import TABLE, MemoTable

    file = database_file(folder.database_url, folder.root)
    if file is not None and not file.is_file():
        return Finding("数据库", "fail", "还没有建立", "请运行 ambot orm upgrade（不要用 nb orm）")
    table = MemoTable(folder.database_url if file is None else f"sqlite:///{file}")
    try:
        with table.begin() as memos:
            if memos is None:
                return Finding("数据库", "fail", f"没有表 {TABLE}", "请运行 ambot orm upgrade（不要用 nb orm）")
            return Finding("数据库", "ok", "表已建立")
    finally:
        table.close()


def _l3(settings: FileSettings) -> Iterator[Finding]:
    section = settings.subconscious
    if section.enabled and not section.targets:
        yield Finding(
            "离线整理",
            "warn",
            "已开启但没有 target_user_id，不会运行",
            "请在 config.toml 的 [subconscious] 写 target_user_id",
        )
    if not section.enabled and section.targets:
        yield Finding("离线整理", "warn", "写了 target_user_id 但没有开启", "需要的话请写 enabled = true")


def _config_base(folder: BotFolder) -> Path:
    return folder.config_file.parent.parent


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}


def _at(data: dict[str, Any], *keys: str) -> Any:
    found: Any = data
    for key in keys:
        if not isinstance(found, dict):
            return None
        found = cast("dict[str, Any]", found).get(key)
    return found
