"""Where the host keeps our settings: `.env` (NoneBot), `config.toml` (uniconf), paths (localstore)."""

from pathlib import Path

import nonebot
from nonebot_plugin_localstore import get_config_dir, get_data_dir
from nonebot_plugin_uniconf import BaseDataManager
from pydantic import ValidationError

from amrita_plugin_memory.kernel.errors import ConfigInvalid
from amrita_plugin_memory.settings import EnvSettings, FileSettings

OWNER = "amrita_plugin_memory"


class ConfigFile(BaseDataManager[FileSettings]):
    """`config/amrita_plugin_memory/config.toml`: created with the defaults when missing, reloaded when it changes."""

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
    try:
        return EnvSettings(**{name: value for name, value in known.items() if name in names})
    except ValidationError as e:
        raise ConfigInvalid(f".env 有误：{EnvSettings.problem(e)}") from e


def data_dir() -> Path:
    """The plugin's data directory; made when missing."""
    return get_data_dir(OWNER)


def config_dir() -> Path:
    """The plugin's configuration directory; made when missing."""
    return get_config_dir(OWNER)
