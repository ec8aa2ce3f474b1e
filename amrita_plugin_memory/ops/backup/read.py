"""Read a backup before anything is touched: whole, well formed, and what is in it. Blocking, in bounded memory."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from pydantic import ValidationError

from amrita_plugin_memory.facts.keys import Skipped, moved, renew
from amrita_plugin_memory.kernel.errors import Corrupt
from amrita_plugin_memory.vectordb.ports import PARTITION_KEY, Row, Scalar

from .manifest import Manifest, Tally
from .shelf import manifest_of
from .stream import Event, Json, elements, events

ARRAYS: Final = ("ids", "documents", "metadatas")
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Checked:
    """What a backup holds. ``problems`` are sentences about rows that cannot be used; the others can."""

    collection: str
    created_at: str
    tally: Tally
    ids: frozenset[str]
    memos: int
    knowledge: int
    manifest: Manifest | None
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _Scan:
    counts: dict[str, int] = field(default_factory=dict[str, int])
    scalars: dict[str, str] = field(default_factory=dict[str, str])
    ids: set[str] = field(default_factory=set[str])
    tally: Tally = field(default_factory=Tally)


def check(path: Path, *, deep: bool = True) -> Checked:
    """Read the whole file and, with ``deep``, compare its digest with the manifest's.

    Raises:
        Corrupt: it is no backup, is cut short, was changed, its arrays do not fit together, an id comes twice, or it
            holds nothing. The sentence says which.

    """
    manifest = _manifest(path)
    if manifest is not None:
        _compare(path, manifest, deep=deep)
    scan = _Scan()
    for event in events(path):
        _take(event, scan, path.name)
    _fits(scan, path.name)
    problems = [f"{scan.tally.nobodys} 条没有归属（user_id），不能恢复"] if scan.tally.nobodys else []
    return Checked(
        collection=scan.scalars.get("collection", ""),
        created_at=scan.scalars.get("created_at", ""),
        tally=scan.tally,
        ids=frozenset(scan.ids),
        memos=scan.counts.get("memos", 0),
        knowledge=scan.counts.get("knowledge", 0),
        manifest=manifest,
        problems=tuple(problems),
    )


def rows(path: Path) -> Iterator[Row]:
    """The usable rows of a checked backup, under today's keys; rows of nobody are left out."""
    columns = (elements(path, name) for name in ARRAYS)
    for one, document, metadata in zip(*columns, strict=False):
        row = _row(one, document, metadata)
        if row is not None:
            yield row


def pages(path: Path, size: int) -> Iterator[list[Row]]:
    """The same, at most ``size`` at a time."""
    found = rows(path)
    while page := list(itertools.islice(found, size)):
        yield page


def _row(id: Json, document: Json, metadata: Json) -> Row | None:
    if not isinstance(metadata, dict):
        return None
    meta: dict[str, Scalar] = {k: v for k, v in metadata.items() if isinstance(v, str | int | float | bool)}
    key = meta.get(PARTITION_KEY)
    if not isinstance(key, str) or not key.strip():
        return None
    new = renew(key, meta.get("scope"))
    fitting = meta if isinstance(new, Skipped) else moved(meta, new)
    return Row(str(id), document if isinstance(document, str) else None, fitting)


def _take(event: Event, scan: _Scan, name: str) -> None:
    if event.kind == "value":
        if event.key in ARRAYS:
            raise Corrupt(f"备份文件 {name} 里的 {event.key} 不是列表")
        if isinstance(event.value, str):
            scan.scalars[event.key] = event.value[:200]
        return
    if event.kind == "end":
        scan.counts.setdefault(event.key, 0)
        return
    place = scan.counts[event.key] = scan.counts.get(event.key, 0) + 1
    _ELEMENTS.get(event.key, _any)(event.value, scan, f"备份文件 {name} 的 {event.key} 第 {place} 项")


def _any(value: Json, scan: _Scan, where: str) -> None:
    """Elements of arrays that are not ours to judge."""


def _id(value: Json, scan: _Scan, where: str) -> None:
    if not isinstance(value, str) or not value:
        raise Corrupt(f"{where}不是编号")
    if value in scan.ids:
        raise Corrupt(f"{where}与前面的编号重复")
    scan.ids.add(value)


def _document(value: Json, scan: _Scan, where: str) -> None:
    if value is not None and not isinstance(value, str):
        raise Corrupt(f"{where}不是文本")


def _metadata(value: Json, scan: _Scan, where: str) -> None:
    if value is not None and not isinstance(value, dict):
        raise Corrupt(f"{where}不是元数据")
    scan.tally.add(cast("dict[str, Scalar] | None", value))


_ELEMENTS: Final = {"ids": _id, "documents": _document, "metadatas": _metadata}


def _fits(scan: _Scan, name: str) -> None:
    sizes = [scan.counts.get(array) for array in ARRAYS]
    if sizes[0] is None:
        raise Corrupt(f"{name} 不是记忆备份（没有 ids）")
    if len(set(sizes)) > 1:
        raise Corrupt(f"备份文件 {name} 的 ids、documents、metadatas 长短不一，文件不完整")
    if not sizes[0] and not scan.counts.get("memos") and not scan.counts.get("knowledge"):
        raise Corrupt(f"备份文件 {name} 里没有记忆，没有可恢复的内容")


def _manifest(path: Path) -> Manifest | None:
    try:
        return Manifest.model_validate_json(manifest_of(path).read_bytes())
    except FileNotFoundError:
        return None
    except (ValidationError, OSError) as e:
        raise Corrupt(f"{manifest_of(path).name} 读不出来，请删掉它后再试（备份本身不受影响）") from e


def _compare(path: Path, manifest: Manifest, *, deep: bool) -> None:
    if path.stat().st_size != manifest.bytes:
        raise Corrupt(f"备份文件 {path.name} 的大小与清单不符，文件不完整或被改动过")
    if deep and digest(path) != manifest.sha256:
        raise Corrupt(f"备份文件 {path.name} 的校验值与清单不符，文件被改动过")


def digest(path: Path) -> str:
    """sha256 of a file, as hex."""
    value = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            value.update(block)
    return value.hexdigest()
