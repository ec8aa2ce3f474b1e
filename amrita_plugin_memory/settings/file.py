"""`config/amrita_plugin_memory/config.toml`: every field of the seed, with its default and bounds."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from amrita_plugin_memory.kernel.complaints import first_complaint
from amrita_plugin_memory.kernel.errors import ConfigInvalid

# The host writes the file again from the model at every start: what we do not know must come out as it went in,
# or who goes back to another version has lost its settings.
_KEEPS_THE_REST: Final = ConfigDict(extra="allow")
_PLACE: Final = re.compile(r"at line (\d+), column (\d+)")


class SubconsciousSettings(BaseModel):
    """`[subconscious]`: the background cycle (L3)."""

    model_config = _KEEPS_THE_REST

    enabled: bool = Field(default=False, description="是否启用离线巩固循环")
    target_user_id: str | list[str] = Field(default="", description="目标用户 QQ 号，可写多个；为空则不启动")
    allowed_tools: list[str] = Field(default_factory=list, description="额外可用的全局工具，不存在只告警")
    max_iterations: int = Field(default=10, ge=1, le=50, description="单轮推理的最大步数")
    loop_detect_threshold: int = Field(default=3, ge=2, le=10, description="重复推理检测阈值")
    rethink_base_delay_minutes: int | float = Field(default=30, gt=0, description="退避基数（分钟），可写小数")
    rethink_penalty_multiplier: float = Field(default=1.5, ge=1, le=10, description="退避倍率")
    rethink_max_delay_minutes: int = Field(default=1440, ge=60, le=10080, description="退避上限（分钟）")
    prompt_file: str = Field(default="prompt/subconscious_main.md.jinja2", description="主推理提示词模板")
    prompt_send_file: str = Field(default="prompt/subconscious_send.md.jinja2", description="主动消息模板")
    prompt_knowledge_file: str = Field(default="prompt/knowledge_guide.md.jinja2", description="知识库指南模板")
    prompt_profile_file: str = Field(default="prompt/profile_guide.md.jinja2", description="画像指南模板")
    enable_memory_compress: bool = Field(default=True, description="长上下文先压缩再推理")
    allow_send_to_user: bool = Field(default=False, description="允许主动发私聊消息")
    memory_warn_threshold: int = Field(default=100, ge=10, description="记忆超过此数时提示压缩")
    max_abstracts: int = Field(default=5, ge=1, le=20, description="保留最近几轮的摘要")
    knowledge_max_chars: int = Field(default=10_000, ge=100, le=100_000, description="知识条目正文上限")
    knowledge_collection_name: str = Field(default="amrita_global_knowledge", description="知识库集合名")
    enable_knowledge: bool = Field(default=True, description="是否启用全局知识库（需 enabled = true）")
    daily_token_budget: int = Field(default=200_000, ge=0, description="每日 token 预算，0 表示不限")
    daily_message_cap: int = Field(default=3, ge=0, description="每日主动消息条数上限")

    @property
    def targets(self) -> tuple[str, ...]:
        """The target accounts, in order, without blanks and repetitions."""
        given = self.target_user_id
        names = given if isinstance(given, list) else given.replace("，", ",").split(",")
        return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))

    @model_validator(mode="before")
    @classmethod
    def _numbers_are_accounts(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data  # pydantic's own complaint says it better
        # People write QQ numbers without quotes; TOML then hands us integers.
        known = cast("dict[str, Any]", data)
        given = known.get("target_user_id", "")
        plain = [str(x) for x in cast("list[object]", given)] if isinstance(given, list) else str(given)
        return {**known, "target_user_id": plain}


class RecallSettings(BaseModel):
    """`[recall]`: soft preferences of the search, off as measured best; none can hide the row that answers best."""

    model_config = _KEEPS_THE_REST

    recency: float = Field(default=0.0, ge=0, le=0.1, description="越新的记忆越靠前的程度，0 为关闭")
    recency_half_life_days: float = Field(default=90.0, ge=1, description="新近程度每过多少天减半")
    importance: float = Field(default=0.0, ge=0, le=0.1, description="越重要的记忆越靠前的程度，0 为关闭")


class FileSettings(BaseModel):
    """The whole file. Unknown keys are kept and never an error: files of other versions open and stay as they are."""

    model_config = _KEEPS_THE_REST

    short_term_expiry_days: int = Field(default=7, ge=0, description="预留字段：记忆不会自动过期")
    long_term_expiry_days: int = Field(default=90, ge=0, description="预留字段：记忆不会自动过期")
    per_session_memory_limit: int = Field(default=50, ge=1, le=100_000, description="单个分区的记忆条数上限")
    memo_max_chars: int = Field(default=1000, ge=100, le=10_000, description="备忘录字数硬上限")
    recall: RecallSettings = Field(default_factory=lambda: RecallSettings())  # noqa: PLW0108 - as below
    subconscious: SubconsciousSettings = Field(default_factory=lambda: SubconsciousSettings())  # noqa: PLW0108 - the type checker wants no parameters

    @classmethod
    def read(cls, path: Path) -> FileSettings:
        """Read a TOML file; a missing file gives the defaults.

        Raises:
            ConfigInvalid: not TOML, or a value out of bounds; the sentence names the field.

        """
        try:
            return cls.model_validate(tomllib.loads(path.read_text("utf-8-sig")))
        except FileNotFoundError:
            return cls()
        except UnicodeDecodeError as e:
            raise ConfigInvalid(f"配置文件 {path.name} 不是 UTF-8 编码，请另存为 UTF-8") from e
        except tomllib.TOMLDecodeError as e:
            raise ConfigInvalid(f"配置文件 {path.name} 不是有效的 TOML，请检查{_place(e)}") from e
        except ValidationError as e:
            raise ConfigInvalid(f"配置文件 {path.name} 有误：{first_problem(e)}") from e


def first_problem(error: ValidationError, *, spelled: Callable[[str], str] = str) -> str:
    """The first complaint of pydantic as ``field: reason``, without the value (it may be a secret).

    ``spelled`` writes the field's name as the owner knows it; what follows it (a key of a table) stays.
    """
    where, reason = first_complaint(error)
    return f"{'.'.join((spelled(where[0]), *where[1:]))}: {reason}" if where else reason


def _place(error: tomllib.TOMLDecodeError) -> str:
    found = _PLACE.search(str(error))
    return f"第 {found[1]} 行第 {found[2]} 列" if found else "文件的末尾"
