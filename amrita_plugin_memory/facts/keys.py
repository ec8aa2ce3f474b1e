"""Partition keys of older versions, and what they become. Pure: rows in, changes out.

Two old keys may become one new key (``user_007`` and ``user_7``): their rows then stand in one partition, none is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from amrita_plugin_memory.kernel.scope import UniId
from amrita_plugin_memory.vectordb.ports import PARTITION_KEY, Row, Scalar

NO_KEY: Final = "没有归属（user_id）"
NO_SCOPE: Final = "只有号码，看不出是个人还是群"
CHANNEL: Final = "频道的记忆，插件没有频道"
UNKNOWN: Final = "不认识的归属格式"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that stays as it is, and why."""

    id: str
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with some rows: ``changed`` carries the new metadata and no vectors."""

    changed: tuple[Row, ...]
    skipped: tuple[Skipped, ...]
    renamed: Mapping[str, str]


def plan(rows: Sequence[Row]) -> Plan:
    """The changes that bring these rows to today's keys; rows that have one already are in neither list."""
    changed: list[Row] = []
    skipped: list[Skipped] = []
    renamed: dict[str, str] = {}
    for row in rows:
        old = row.metadata.get(PARTITION_KEY)
        new = renew(old, row.metadata.get("scope"))
        if isinstance(new, Skipped):
            skipped.append(Skipped(row.id, new.key, new.reason))
        elif new != old:
            renamed[str(old)] = new
            changed.append(Row(row.id, None, moved(row.metadata, new)))
    return Plan(tuple(changed), tuple(skipped), renamed)


def moved(metadata: Mapping[str, Scalar], key: str) -> dict[str, Scalar]:
    """A row's metadata under another key; ``scope`` is put right where it was missing."""
    unit = UniId.parse(key)
    scope = "group" if unit is not None and unit.kind == "group" else "user"
    return {**metadata, PARTITION_KEY: key, "scope": metadata.get("scope") or scope}


def renew(key: object, scope: object = "") -> str | Skipped:
    """Today's key for a stored one of any age, or why there is none."""
    if not isinstance(key, str) or not key.strip():
        return Skipped("", "", NO_KEY)
    text = key.strip()
    if text.isascii() and text.isdigit():
        if scope not in ("user", "group"):
            return Skipped("", text, NO_SCOPE)
        text = f"{scope}_{text}"
    unit = UniId.parse_old(text)
    if unit is None:
        return Skipped("", text[:80], CHANNEL if "Channel_" in text else UNKNOWN)
    return unit.key()
