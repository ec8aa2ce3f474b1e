"""What a bot's folder says: `.env` and `.env.<environment>`, where data and configuration are, and the database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from amrita_plugin_memory.kernel.errors import ConfigInvalid
from amrita_plugin_memory.settings import EnvSettings, FileSettings
from amrita_plugin_memory.settings.file import first_problem

OWNER: Final = "amrita_plugin_memory"
CHROMA: Final = "vector_db.chroma"  # as app.open has it, which would bring half the house along
_APP: Final = "nonebot2"  # where localstore keeps data of a user without LOCALSTORE_USE_CWD


class HostSettings(BaseSettings):
    """The host's own settings that decide where our data is, and what `doctor` looks at."""

    model_config = SettingsConfigDict(extra="ignore", env_file_encoding="utf-8")

    environment: str = "prod"
    localstore_use_cwd: bool = False
    localstore_data_dir: Path | None = None
    localstore_config_dir: Path | None = None
    localstore_plugin_data_dir: dict[str, Path] = Field(default_factory=dict[str, Path])
    localstore_plugin_config_dir: dict[str, Path] = Field(default_factory=dict[str, Path])
    sqlalchemy_database_url: str = ""
    superusers: set[str] = Field(default_factory=set[str])
    webui_password: str = "admin123"  # noqa: S105 - the host's default, which doctor warns about
    webui_enable: bool = True
    rate_limit: float = 5
    alembic_startup_check: bool = True


@dataclass(frozen=True, slots=True)
class BotFolder:
    """One bot, read once. ``data_dir`` is the plugin's own data directory; nothing here has to exist."""

    root: Path
    host: HostSettings
    env: EnvSettings
    file: FileSettings
    data_dir: Path
    config_file: Path
    database_url: str
    env_files: tuple[Path, ...]

    @property
    def chroma(self) -> Path:
        """The local vector store."""
        return self.data_dir / CHROMA

    @property
    def backups(self) -> Path:
        """Where backups are."""
        return self.data_dir / "backups"

    @classmethod
    def read(cls, root: Path) -> BotFolder:
        """Read the folder of a bot.

        Raises:
            ConfigInvalid: a setting that cannot be used; the sentence names it.

        """
        root = root.resolve()
        files = _env_files(root)
        host = _host(files)
        data, config = _base(host, root, "data"), _base(host, root, "config")
        data_dir = _inside(root, host.localstore_plugin_data_dir.get(OWNER, data / OWNER))
        config_file = _inside(root, host.localstore_plugin_config_dir.get(OWNER, config / OWNER)) / "config.toml"
        default = data / "nonebot_plugin_orm" / "db.sqlite3"
        return cls(
            root=root,
            host=host,
            env=EnvSettings.read(*files),
            file=FileSettings.read(config_file),
            data_dir=data_dir,
            config_file=config_file,
            database_url=host.sqlalchemy_database_url or f"sqlite:///{default}",
            env_files=files,
        )


def database_file(url: str, root: Path) -> Path | None:
    """The file of an SQLite address; None for a server or memory."""
    scheme, _, rest = url.partition("://")
    if not scheme.startswith("sqlite") or not rest.startswith("/") or rest[1:] in ("", ":memory:"):
        return None
    return _inside(root, Path(rest[1:]))


def _env_files(root: Path) -> tuple[Path, ...]:
    first = root / ".env"
    named = HostSettings(_env_file=first).environment if first.is_file() else HostSettings().environment  # pyright: ignore[reportCallIssue]
    second = root / f".env.{named}"
    return tuple(path for path in (first, second) if path.is_file())


def _host(files: tuple[Path, ...]) -> HostSettings:
    try:
        return HostSettings(_env_file=files)  # pyright: ignore[reportCallIssue]
    except ValidationError as e:
        raise ConfigInvalid(f".env 有误：{first_problem(e)}") from e


def _base(host: HostSettings, root: Path, what: str) -> Path:
    given = host.localstore_data_dir if what == "data" else host.localstore_config_dir
    if given is not None:
        return _inside(root, given)
    if host.localstore_use_cwd:
        return root / what
    from nonestorage import user_config_dir, user_data_dir

    return Path(user_data_dir(_APP) if what == "data" else user_config_dir(_APP)).resolve()


def _inside(root: Path, path: Path) -> Path:
    return path if path.is_absolute() else (root / path).resolve()
