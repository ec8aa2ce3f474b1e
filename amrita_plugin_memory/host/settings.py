"""Where the host keeps our settings: `.env` (NoneBot), `config.toml` (uniconf), paths (localstore)."""

import asyncio
import codecs
from pathlib import Path

import nonebot
from nonebot_plugin_localstore import get_config_dir, get_data_dir
from nonebot_plugin_uniconf import BaseDataManager

from amrita_plugin_memory.kernel.errors import ConfigInvalid
from amrita_plugin_memory.settings import EnvSettings, FileSettings

OWNER = "amrita_plugin_memory"


class ConfigFile(BaseDataManager[FileSettings]):
    """`config/amrita_plugin_memory/config.toml`: created with the defaults when missing, reloaded when it changes.

    The host writes it anew at every start, from the values: comments and the order of the lines are lost.
    """

    config: FileSettings
    config_class = FileSettings
    _owner_name = OWNER
    __lateinit__ = True  # made at start-up, when an event loop runs


def read_env() -> EnvSettings:
    """The environment as NoneBot read it: the process's own, `.env` and `.env.<environment>`.

    Raises:
        ConfigInvalid: a value that cannot be used.

    """
    known = {name.lower(): value for name, value in nonebot.get_driver().config.model_dump().items()}
    names = {*EnvSettings.model_fields, "embedding_protocol"}
    return EnvSettings.of({name: value for name, value in known.items() if name in names})


async def open_file() -> ConfigFile:
    """The configuration file, read once and watched from now on.

    Raises:
        ConfigInvalid: the host could not read it; the sentence names the field or the place.

    """
    # The host's reader knows no sentences, so ours looks first.
    await asyncio.to_thread(_refuse_bad, config_dir() / "config.toml")
    files = ConfigFile()
    await files.safe_get_config()
    return files


def _refuse_bad(path: Path) -> None:
    FileSettings.read(path)
    if path.is_file() and path.read_bytes().startswith(codecs.BOM_UTF8):
        raise ConfigInvalid(f"配置文件 {path.name} 宿主读不了，请另存为不带 BOM 的 UTF-8")


def data_dir() -> Path:
    """The plugin's data directory; made when missing."""
    return get_data_dir(OWNER)


def config_dir() -> Path:
    """The plugin's configuration directory; made when missing."""
    return get_config_dir(OWNER)
