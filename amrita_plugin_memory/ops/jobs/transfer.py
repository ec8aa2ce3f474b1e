"""Facts and memos as lines of JSON: out in bounded memory, and in without doubles."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.facts.fact import Fact, from_row, to_metadata
from amrita_plugin_memory.facts.keys import Skipped, renew
from amrita_plugin_memory.facts.rules import checked_content, checked_importance, checked_tags, same_text
from amrita_plugin_memory.kernel.clock import parse_iso
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, StoreUnavailable
from amrita_plugin_memory.kernel.scope import UniId
from amrita_plugin_memory.ops.upkeep.names import PENDING
from amrita_plugin_memory.ops.upkeep.progress import Meter
from amrita_plugin_memory.ops.upkeep.vectors import Vectors
from amrita_plugin_memory.retrieval import SpaceGuard
from amrita_plugin_memory.vectordb.ports import PARTITION_KEY, Collection, Row

from .place import Place

Write: TypeAlias = Callable[[str], object]
_PAGE: Final = 500


class FactLine(BaseModel):
    """One line of an export that is a fact; unknown fields are left out."""

    model_config = ConfigDict(extra="ignore")

    id: str
    partition: str
    content: str
    scope: str = ""
    tags: str = ""
    importance: str = "medium"
    created_at: str = ""
    updated_at: str = ""
    author: str = ""
    door: str = ""
    session: str = ""


async def write_lines(place: Place, target: Path | Write, *, only: UniId | None) -> dict[str, int]:
    """Write facts, then memos, to a new file (0600, atomic) or to a function; how many of each.

    Raises:
        StoreUnavailable: the store cannot be read or the file not written.

    """
    if not isinstance(target, Path):
        return await _lines(place, target, only)
    part = target.with_name(f".{target.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            counts = await _lines(place, file.write, only)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as e:
        raise StoreUnavailable(f"{target.name} 写不进去，请检查目录的空间和权限") from e
    finally:
        part.unlink(missing_ok=True)
    return counts


async def _lines(place: Place, write: Write, only: UniId | None) -> dict[str, int]:
    counts = {"facts": 0, "memos": 0}
    collection = await place.store.open(COLLECTION, create=False)
    if collection is not None:
        async for page in collection.pages(size=_PAGE):
            lines = [_line(from_row(row)) for row in page if only is None or _is(row, only)]
            counts["facts"] += len(lines)
            await asyncio.to_thread(write, "".join(lines))
    if place.memos is not None:
        counts["memos"] = await asyncio.to_thread(_memo_lines, place, write, only)
    return counts


def _memo_lines(place: Place, write: Write, only: UniId | None) -> int:
    count = 0
    for memo in place.memos.rows() if place.memos else ():
        if only is None or memo.key == only.key():
            count += 1
            line = {"type": "memo", "partition": memo.key, "content": memo.content, "version": memo.version}
            write(json.dumps({**line, "updated_at": memo.updated_at.isoformat()}, ensure_ascii=False) + "\n")
    return count


def _line(fact: Fact) -> str:
    fields = {
        "type": "fact",
        "id": fact.id,
        "partition": fact.partition,
        "content": fact.content,
        **{key: value for key, value in to_metadata(fact).items() if key != PARTITION_KEY},
    }
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _is(row: Row, unit: UniId) -> bool:
    return UniId.parse_old(str(row.metadata.get(PARTITION_KEY, ""))) == unit


async def read_lines(place: Place, path: Path, *, dry_run: bool) -> dict[str, int]:
    """Add the facts of a file; known ids and known texts of a partition are left alone, memos are not touched.

    Raises:
        SpaceMismatch: the store was built with another model; rebuild it first.
        EmbeddingUnavailable: the service stayed down; what was added stays, run it again.

    """
    done = {"added": 0, "known": 0, "bad": 0, "other": 0}
    collection = await place.store.open(COLLECTION, create=not dry_run)
    vectors = Vectors(place.embedder, batch=place.pace.batch, sleep=place.pace.sleep)
    if collection is not None and not dry_run:
        await SpaceGuard(place.embedder).claim(collection)
        await vectors.open()
    total = await asyncio.to_thread(_count, path)
    meter = Meter("import", total, place.pace.clock, place.pace.report)
    meter.start()
    seen: dict[str, set[str]] = {}
    for page in _pages(_facts(path, done)):
        fresh = [row for row in await _unknown(collection, page, seen) if row is not None]
        done["known"] += len(page) - len(fresh)
        done["added"] += len(fresh)
        if collection is not None and fresh and not dry_run:
            await _add(collection, fresh, vectors)
        meter.step(len(page))
    return done


async def _add(collection: Collection, rows: list[Row], vectors: Vectors) -> None:
    found = await vectors.of([row.document or "" for row in rows])
    if None in [v if v is None else 0 for v in found]:
        await collection.annotate({PENDING: True})
    zeros = vectors.zeros()
    pairs = zip(rows, found, strict=True)
    await collection.add([Row(r.id, r.document, r.metadata, zeros if v is None else v) for r, v in pairs])


async def _unknown(collection: Collection | None, rows: list[Row], seen: dict[str, set[str]]) -> list[Row | None]:
    known = {row.id for row in await collection.get([row.id for row in rows])} if collection else set[str]()
    fresh: list[Row | None] = []
    for row in rows:
        key, text = str(row.metadata[PARTITION_KEY]), same_text(row.document or "")
        if key not in seen:
            there = (await collection.partition(key)).rows if collection else ()
            seen[key] = {same_text(one.document or "") for one in there}
        double = row.id in known or text in seen[key]
        seen[key].add(text)
        fresh.append(None if double else row)
    return fresh


def _facts(path: Path, done: dict[str, int]) -> Iterator[Row]:
    ids: set[str] = set()
    for fields in _objects(path, done):
        if fields.get("type", "fact") != "fact":
            done["other"] += 1
            continue
        row = _row(fields)
        if row is None or row.id in ids:
            done["known" if row else "bad"] += 1
            continue
        ids.add(row.id)
        yield row


def _row(fields: dict[str, Any]) -> Row | None:
    try:
        line = FactLine.model_validate(fields)
        key = renew(line.partition, line.scope)
        if isinstance(key, Skipped) or not line.id:
            return None
        unit = UniId.parse(key)
        fact = Fact(
            id=line.id[:64],
            content=checked_content(line.content),
            partition=key,
            scope="group" if unit is not None and unit.kind == "group" else "user",
            tags=checked_tags(line.tags),
            importance=checked_importance(line.importance),
            created_at=line.created_at if parse_iso(line.created_at) else "",
            updated_at=line.updated_at if parse_iso(line.updated_at) else "",
            author=line.author[:64],
            door="import",
            session=line.session[:64],
        )
    except (ValidationError, AmritaMemoryError):
        return None
    return Row(fact.id, fact.content, to_metadata(fact))


def _objects(path: Path, done: dict[str, int]) -> Iterator[dict[str, Any]]:
    with path.open("r", encoding="utf-8-sig", errors="replace") as file:
        for text in file:
            if not text.strip():
                continue
            try:
                value: object = json.loads(text)
            except ValueError:
                value = None
            if isinstance(value, dict):
                yield cast("dict[str, Any]", value)
            else:
                done["bad"] += 1


def _pages(rows: Iterator[Row]) -> Iterator[list[Row]]:
    page: list[Row] = []
    for row in rows:
        page.append(row)
        if len(page) == _PAGE:
            yield page
            page = []
    if page:
        yield page


def _count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())
