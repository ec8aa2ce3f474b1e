"""A look into a local Chroma directory without Chroma: what `status` needs, in milliseconds and while a bot runs.

Reads ``chroma.sqlite3`` of Chroma 1.5 read-only. Closing a file of the database drops this process's locks on it, so
this is only for a process that has no store open.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.vectordb.directory import DATABASE, OWNER_FILE, reading
from amrita_plugin_memory.vectordb.ports import PARTITION_KEY, Scalar

_METADATA = "SELECT key, str_value, int_value, float_value, bool_value FROM collection_metadata WHERE collection_id = ?"
_ROWS = (
    "SELECT count(*) FROM embeddings WHERE segment_id IN "
    "(SELECT id FROM segments WHERE collection = ? AND scope = 'METADATA')"
)
_GROUPS = (
    "SELECT m.string_value, count(*) FROM embedding_metadata m JOIN embeddings e ON e.id = m.id "
    "WHERE m.key = ? AND e.segment_id IN (SELECT id FROM segments WHERE collection = ? AND scope = 'METADATA') "
    "GROUP BY m.string_value"
)


@dataclass(frozen=True, slots=True)
class Glance:
    """One collection as it stands on disk; ``partitions`` maps a key to its number of rows."""

    name: str
    rows: int
    dimension: int | None
    metadata: dict[str, Scalar]
    partitions: dict[str, int] = field(default_factory=dict[str, int])


def peek(directory: Path, *, partitions_of: str = "") -> list[Glance]:
    """All collections of the directory, partitions counted for one of them; none when nothing was stored yet.

    Raises:
        StoreUnavailable: the database cannot be read, or is not as Chroma 1.5 writes it.

    """
    if not (directory / DATABASE).is_file():
        return []
    try:
        with reading(directory) as connection:
            found = connection.execute("SELECT id, name, dimension FROM collections ORDER BY name").fetchall()
            return [_glance(connection, row, partitions=row[1] == partitions_of) for row in found]
    except sqlite3.Error as e:
        raise StoreUnavailable("向量库的数据库读不出来，请检查 vector_db.chroma 目录，或从备份恢复") from e


def writer(directory: Path) -> int | None:
    """The process that has the directory open for writing, as far as can be told; None when there is none."""
    try:
        pid = int((directory / OWNER_FILE).read_text("utf-8"))
        os.kill(pid, 0)
    except PermissionError:
        return -1  # somebody else's process
    except (OSError, ValueError):
        return None
    return None if pid == os.getpid() else pid


def _glance(connection: sqlite3.Connection, row: tuple[str, str, int | None], *, partitions: bool) -> Glance:
    id, name, dimension = row  # noqa: A001 - Chroma's word
    metadata = {key: value for key, *values in connection.execute(_METADATA, (id,)) if (value := _value(values)) != ""}
    groups = dict(connection.execute(_GROUPS, (PARTITION_KEY, id))) if partitions else {}
    rows = connection.execute(_ROWS, (id,)).fetchone()[0]
    return Glance(name, rows, dimension, metadata, {str(k): n for k, n in groups.items()})


def _value(values: list[str | int | float | None]) -> Scalar:
    text, whole, real, truth = values
    if truth is not None:
        return bool(truth)
    return next((v for v in (text, whole, real) if v is not None), "")
