"""What a backup says of itself in the file beside it, and counting as rows go by. Pure but for the digest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from amrita_plugin_memory.kernel.scope import UniId
from amrita_plugin_memory.vectordb.ports import PARTITION_KEY, Scalar

FORMAT: Final = 1


class Manifest(BaseModel):
    """``embed_backup_….manifest``; unknown fields are kept out, so that later versions may add some."""

    model_config = ConfigDict(extra="ignore")

    format: int = FORMAT
    file: str
    bytes: int
    sha256: str
    created_at: str
    reason: str = ""
    rows: int
    partitions: int
    scopes: dict[str, int] = Field(default_factory=dict)
    memos: int = 0
    knowledge: int = 0
    profile: bool = False
    fingerprint: dict[str, str | int | float | bool] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """Counts rows by scope and by partition."""

    rows: int = 0
    scopes: Counter[str] = field(default_factory=Counter[str])
    partitions: Counter[str] = field(default_factory=Counter[str])
    nobodys: int = 0

    def add(self, metadata: Mapping[str, Scalar] | None) -> None:
        """Count one row; a row without a partition is nobody's."""
        self.rows += 1
        key = (metadata or {}).get(PARTITION_KEY)
        if not isinstance(key, str) or not key:
            self.nobodys += 1
            return
        self.partitions[key] += 1
        self.scopes[scope_of(key, metadata or {})] += 1


def scope_of(key: str, metadata: Mapping[str, Scalar]) -> str:
    """``user`` or ``group``: by the key, and by the row's own word where the key does not say."""
    unit = UniId.parse_old(key)
    if unit is not None:
        return "group" if unit.kind == "group" else "user"
    return "group" if metadata.get("scope") == "group" else "user"
