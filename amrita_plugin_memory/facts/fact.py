"""The record of this room, and how it stands in the store. Pure.

Metadata of the published plugin: ``user_id``, ``scope``, ``tags``, ``importance``, ``created_at``, all strings. Ours
adds ``updated_at`` and where it came from (``author``, ``door``, ``session``); older rows lack these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from amrita_plugin_memory.kernel.clock import local_zone, parse_iso
from amrita_plugin_memory.kernel.scope import ScopeName, UniId
from amrita_plugin_memory.vectordb.ports import PARTITION_KEY, Matrix, Row, Scalar

Importance: TypeAlias = Literal["low", "medium", "high"]
IMPORTANCES: Final[tuple[Importance, ...]] = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing remembered. ``tags`` is the comma-separated string of the published plugin."""

    id: str
    content: str
    partition: str
    scope: ScopeName
    tags: str
    importance: Importance
    created_at: str
    updated_at: str = ""
    author: str = ""
    door: str = ""
    session: str = ""

    @property
    def created(self) -> datetime | None:
        """When it was first stored; None when the stored text is no date."""
        return parse_iso(self.created_at)

    @property
    def day(self) -> str:
        """The date of its last change in the owner's zone, as ``2026-11-30``; "" when unknown."""
        moment = parse_iso(self.updated_at or self.created_at)
        return moment.astimezone(local_zone()).date().isoformat() if moment else ""


def to_row(fact: Fact, vector: Matrix | None) -> Row:
    """The fact as the store keeps it."""
    return Row(fact.id, fact.content, to_metadata(fact), vector)


def to_metadata(fact: Fact) -> dict[str, Scalar]:
    """Metadata of a fact; only strings, as the published plugin reads them."""
    return {
        PARTITION_KEY: fact.partition,
        "scope": fact.scope,
        "tags": fact.tags,
        "importance": fact.importance,
        "created_at": fact.created_at,
        "updated_at": fact.updated_at,
        "author": fact.author,
        "door": fact.door,
        "session": fact.session,
    }


def from_row(row: Row) -> Fact:
    """Read a stored row; whatever an older version left out gets a plain default."""
    meta = row.metadata
    partition = _text(meta, PARTITION_KEY)
    return Fact(
        id=row.id,
        content=row.document or "",
        partition=partition,
        scope=_scope(meta, partition),
        tags=_text(meta, "tags"),
        importance=_importance(meta),
        created_at=_text(meta, "created_at"),
        updated_at=_text(meta, "updated_at"),
        author=_text(meta, "author"),
        door=_text(meta, "door"),
        session=_text(meta, "session"),
    )


def _text(meta: Mapping[str, Scalar], name: str) -> str:
    return str(meta.get(name, "") or "")


def _scope(meta: Mapping[str, Scalar], partition: str) -> ScopeName:
    unit = UniId.parse_old(partition)
    if unit is not None:
        return "group" if unit.kind == "group" else "user"
    return "group" if meta.get("scope") == "group" else "user"


def _importance(meta: Mapping[str, Scalar]) -> Importance:
    value = meta.get("importance")
    return "low" if value == "low" else "high" if value == "high" else "medium"
