"""The index folders of a local directory, looked at from outside Chroma. Blocks; only while Chroma has it closed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from amrita_plugin_memory.vectordb.directory import ASIDE, index_id, reading

_HEADER: Final = struct.Struct("<iQQQQQQiIQQQdQ")  # as hnswlib writes it
_STOP: Final = b"."  # the last byte of every whole pickle
_INDEXES: Final = (
    "SELECT s.id, c.name FROM segments s JOIN collections c ON s.collection = c.id WHERE s.scope = 'VECTOR'"
)


class _Header(NamedTuple):
    """``elements`` of ``width`` bytes each; ``links`` an element and level may have, ``near_links`` on the lowest."""

    version: int
    offset: int
    room: int
    elements: int
    width: int
    label_at: int
    vector_at: int
    level: int
    entry: int
    links: int
    near_links: int
    m: int
    mult: float
    ef: int


def damaged(directory: Path) -> list[Path]:
    """Index folders whose files cannot belong together: told by their sizes, which costs microseconds."""
    folders = sorted(directory.iterdir()) if directory.is_dir() else []
    return [path for path in folders if path.name == index_id(path) and not _fits(path)]


def put_aside(directory: Path, folders: Sequence[Path]) -> list[str]:
    """Rename index folders out of Chroma's sight and name the collections they are of. One copy of each is kept."""
    for folder in folders:
        aside = folder.with_name(folder.name + ASIDE)
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
    names = _collections(directory) if folders else {}
    return sorted(names[folder.name] for folder in folders if folder.name in names)


def index_of(directory: Path, collection: str) -> list[Path]:
    """The index folder of a collection; none when it has none on the disk yet."""
    folders = [directory / index for index, name in _collections(directory).items() if name == collection]
    return [folder for folder in folders if folder.is_dir()]


def _fits(folder: Path) -> bool:
    header, names, data = (folder / name for name in ("header.bin", "index_metadata.pickle", "data_level0.bin"))
    if names.is_file() and not _ends_whole(names):
        return False
    if not header.is_file():
        return not names.is_file()
    raw = header.read_bytes()
    if len(raw) != _HEADER.size:
        return False
    head = _Header(*_HEADER.unpack(raw))
    if head.version > 1:
        return True  # files of another version are not ours to judge
    if head.version != 1 or not head.links or not head.near_links or (head.elements and head.entry >= head.elements):
        return False
    if not data.is_file() or data.stat().st_size < head.elements * head.width:
        return False
    return _links_fit(folder / "link_lists.bin", head)


def _links_fit(path: Path, head: _Header) -> bool:
    """Whether the lists of links end where the file ends: one for each element, its size before it."""
    if not path.is_file():
        return not head.elements
    data, at, step = path.read_bytes(), 0, 4 * head.links + 4
    for _ in range(head.elements):
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4 + size
        if size % step or at > len(data):
            return False
    return at == len(data)


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        return file.read() == _STOP


def _collections(directory: Path) -> dict[str, str]:
    with contextlib.suppress(sqlite3.Error), reading(directory) as connection:
        return {str(index): str(name) for index, name in connection.execute(_INDEXES)}
    return {}
