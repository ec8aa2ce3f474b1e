"""`.env` and the environment: every name of the seed, plus the few of ours, with defaults.

The published plugin spells ``EMBEDDING_PROCTOL``; that name stays, ``EMBEDDING_PROTOCOL`` is its alias.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, TypeAlias, cast

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from amrita_plugin_memory.kernel.errors import ConfigInvalid

from .file import first_problem

Protocol: TypeAlias = Literal["auto", "openai", "ollama-embed", "embedded"]
MismatchPolicy: TypeAlias = Literal["ask", "auto", "never", "refuse"]


class EnvSettings(BaseSettings):
    """What the owner configures about services; field names are the lower-case names of `.env`."""

    model_config = SettingsConfigDict(extra="ignore", populate_by_name=True, env_file_encoding="utf-8")

    vector_db_type: Literal["local", "remote"] = Field(default="local", description="ChromaDB 类型")
    vector_db_server: str = Field(default="127.0.0.1", description="远程地址")
    vector_db_port: int = Field(default=8000, ge=1, le=65535, description="远程端口")
    vector_db_server_ssl: bool = Field(default=False, description="远程是否使用 SSL")
    vector_db_remote_headers: dict[str, SecretStr] = Field(default_factory=dict, description="远程请求头")
    vector_db_tenant: str = Field(default="default", description="租户；default 在原装服务器上即 default_tenant")
    vector_db_database: str = Field(default="default", description="数据库；default 在原装服务器上即 default_database")
    vector_db_timeout: float = Field(default=15, gt=0, description="单次调用超时（秒）")

    embedding_model_url: str = Field(default="http://127.0.0.1:11434", description="嵌入服务地址")
    embedding_model_name: str = Field(default="auto", description="模型名；auto 表示取服务上真有的嵌入模型")
    embedding_proctol: Protocol = Field(
        default="auto",
        validation_alias=AliasChoices("embedding_proctol", "embedding_protocol"),
        description="协议：auto / openai / ollama-embed / embedded",
    )
    embedding_model_api_key: SecretStr = Field(default=SecretStr(""), description="API Key")
    embedding_timeout: float = Field(default=30, gt=0, description="单次嵌入请求超时（秒）")
    embedding_batch_size: int = Field(default=32, ge=1, le=1024, description="单次请求的文本条数上限")
    embedding_dimensions: int = Field(
        default=0, ge=0, le=65_536, description="要求服务返回的向量维数；0 表示由服务决定"
    )
    embedding_max_chars: int = Field(default=2000, ge=100, le=100_000, description="单条文本送去嵌入的字数上限")

    embed_check_on_startup: bool = Field(default=True, description="启动时是否检查嵌入指纹")
    embed_mismatch_policy: MismatchPolicy = Field(default="ask", description="嵌入模型变更时的处理策略")
    reembed_batch_size: int = Field(default=64, ge=1, le=1024, description="重映射每批条数")
    reembed_backup_keep: int = Field(default=3, ge=1, le=100, description="保留的备份份数")
    ambot_command_context: bool = Field(default=False, description="由 ambot 命令自举时为真，跳过启动检查")

    @field_validator("embedding_proctol", "vector_db_type", "embed_mismatch_policy", mode="before")
    @classmethod
    def _case_does_not_matter(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator(
        "vector_db_server", "vector_db_tenant", "vector_db_database", "embedding_model_url", "embedding_model_name",
        "embedding_model_api_key", mode="before",
    )  # fmt: skip
    @classmethod
    def _text_is_text(cls, value: object) -> object:
        return _as_written(value)

    @field_validator("vector_db_remote_headers", mode="before")
    @classmethod
    def _headers_are_text(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: _as_written(one) for name, one in cast("dict[object, object]", value).items()}

    @property
    def service_is_configured(self) -> bool:
        """True when the owner named an embedding service, rather than leaving the defaults."""
        return bool({"embedding_model_url", "embedding_model_name"} & self.model_fields_set)

    @classmethod
    def read(cls, *env_files: Path) -> EnvSettings:
        """Read the environment and, below it, the given files (later ones win); missing files are no error.

        Raises:
            ConfigInvalid: a value that cannot be used; the sentence names the variable, never the value.

        """
        return cls._made(_env_file=[f for f in env_files if f.is_file()])

    @classmethod
    def of(cls, values: dict[str, object]) -> EnvSettings:
        """The settings of values read elsewhere, by lower-case name; what is missing comes from the environment.

        Raises:
            ConfigInvalid: as ``read``.

        """
        return cls._made(**values)

    @classmethod
    def _made(cls, **given: object) -> EnvSettings:
        try:
            return cls(**given)  # pyright: ignore[reportArgumentType]
        except ValidationError as e:
            raise ConfigInvalid(f".env 有误：{first_problem(e, spelled=str.upper)}") from e
        except SettingsError as e:  # of all our names only this one is read as JSON
            raise ConfigInvalid(".env 有误：VECTOR_DB_REMOTE_HEADERS: 不是有效的 JSON") from e


def _as_written(value: object) -> object:
    """NoneBot reads values of `.env` as JSON where it can: a key of digits comes as a number. Take it back."""
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else value
