"""Bring back what a backup holds: checked before anything is touched, backed up before, built beside, swapped in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Final, cast

from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.kernel.clock import parse_iso
from amrita_plugin_memory.kernel.errors import Corrupt, InvalidInput
from amrita_plugin_memory.kernel.scope import UniId
from amrita_plugin_memory.ops.backup.extras import INDEX, KNOWLEDGE, MEMOS, is_knowledge
from amrita_plugin_memory.ops.backup.manifest import scope_of
from amrita_plugin_memory.ops.backup.read import Checked, check, digest, pages
from amrita_plugin_memory.ops.backup.shelf import Backup, held
from amrita_plugin_memory.ops.backup.stream import Json, elements
from amrita_plugin_memory.ops.bot.database import MemoRecord, MemoTable
from amrita_plugin_memory.ops.upkeep.rebuild import Rebuild, Rebuilt
from amrita_plugin_memory.ops.upkeep.recover import recover
from amrita_plugin_memory.retrieval import SpaceGuard
from amrita_plugin_memory.vectordb.ports import PARTITION_KEY, Collection, Row

from .place import Place
from .reindex import back_up

_SCOPES: Final = ("user", "group")


@dataclass(frozen=True, slots=True)
class Restored:
    """What was, or with a dry run would be, done. ``kept`` rows of other scopes stay as they are."""

    checked: Checked
    rows: int
    kept: int
    replaced: int
    backup: Backup | None = None
    rebuilt: Rebuilt | None = None
    memos: int = 0
    knowledge: int = 0


async def restore(place: Place, path: Path, *, only: str = "", dry_run: bool = False) -> Restored:
    """Put the backup in the place of what is stored, or of the part that ``only`` names.

    ``only`` is ``user``, ``group``, or a partition key. Memos and knowledge files that the backup holds come back as
    well, knowledge only without ``only``.

    Raises:
        Corrupt: the file cannot be used; nothing was touched.
        InvalidInput: ``only`` is no scope, or the file holds other things than facts.
        EmbeddingUnavailable: the service stayed down; the store is as before, run it again to go on.
        Locked, StoreUnavailable: see ``reindex``.

    """
    with held(path) as own:
        return await _restore(place, path, own, only=only, dry_run=dry_run)


async def _restore(place: Place, named: Path, path: Path, *, only: str, dry_run: bool) -> Restored:
    """Restore from ``path``, which is what ``named`` was when it began."""
    wanted = chosen(only)
    checked = await asyncio.to_thread(check, named)
    if checked.collection not in ("", COLLECTION):
        raise InvalidInput(f"这份备份属于集合 {checked.collection[:60]}，不是记忆，不能恢复到这里")
    if not dry_run:
        await recover(place.store, COLLECTION)
    main = await place.store.open(COLLECTION, create=not dry_run)
    coming = await asyncio.to_thread(_coming, path, wanted)
    kept, replaced = await _standing(main, wanted)
    if dry_run or main is None:
        return Restored(checked, len(coming), kept, replaced)
    if not coming and not checked.memos and not checked.knowledge:
        raise Corrupt("备份里没有符合条件的记忆，没有可恢复的内容")
    backup = await back_up(place, reason="restore", spare={named})
    rebuilt = await _facts(place, main, path, only=only, coming=coming) if coming else None
    memos = await asyncio.to_thread(_memos, place.memos, path, wanted) if place.memos else 0
    knowledge = 0 if only else await asyncio.to_thread(_knowledge, place.data_dir, path)
    return Restored(checked, len(coming), kept, replaced, backup, rebuilt, memos, knowledge)


async def _facts(place: Place, main: Collection, path: Path, *, only: str, coming: frozenset[str]) -> Rebuilt:
    copies = await SpaceGuard(place.embedder).verdict(main) == "same"
    source = _Source(main, path, wanted=chosen(only), coming=coming, copies=copies)
    await asyncio.to_thread(source.name_job, only)
    return await Rebuild(
        place.store, COLLECTION, embedder=place.embedder, pace=place.pace, source=source, shared=place.is_shared
    ).run()


def chosen(only: str) -> Callable[[Row], bool]:
    """Which rows ``only`` names.

    Raises:
        InvalidInput: it is neither empty, ``user``, ``group`` nor a key.

    """
    if not only:
        return lambda _: True
    if only in _SCOPES:
        return lambda row: scope_of(str(row.metadata.get(PARTITION_KEY, "")), row.metadata) == only
    unit = UniId.parse_old(only)
    if unit is None:
        raise InvalidInput(f"--only-scope 只能是 user、group，或 QQPlatform_Private_123 这样的归属，不是 {only[:40]}")
    key = unit.key()
    return lambda row: row.metadata.get(PARTITION_KEY) == key


class _Source:
    """The rows of the backup that are wanted, after the rows of the store that are not."""

    def __init__(
        self, main: Collection, path: Path, *, wanted: Callable[[Row], bool], coming: frozenset[str], copies: bool
    ) -> None:
        self._main = main
        self._path = path
        self._wanted = wanted
        self._coming = coming
        self._copies = copies
        self._job = ""

    def name_job(self, only: str) -> None:
        """Name the work by what is in the file; blocking."""
        self._job = f"restore:{digest(self._path)[:32]}:{only}"

    @property
    def job(self) -> str:
        """See Source."""
        return self._job

    async def count(self) -> int:
        """See Source."""
        return len(self._coming)

    async def pages(self, size: int) -> AsyncIterator[list[Row]]:
        """See Source; rows that stay keep their vectors where these are comparable."""
        async for page in self._main.pages(size=size, vectors=self._copies):
            staying = [_unless_zero(row) for row in page if self._stays(row)]
            if staying:
                yield staying
        backup = pages(self._path, size)
        while page := await asyncio.to_thread(next, backup, None):
            coming = [row for row in page if self._wanted(row)]
            if coming:
                yield coming

    async def get(self, ids: Sequence[str]) -> list[Row]:
        """See Source. Rows of the backup never change, so that only their ids matter here."""
        staying = [row for row in await self._main.get(ids, vectors=self._copies) if self._stays(row)]
        known = {row.id for row in staying}
        return staying + [Row(i, None, {}) for i in ids if i in self._coming and i not in known]

    def _stays(self, row: Row) -> bool:
        return row.id not in self._coming and not self._wanted(row)


async def _standing(main: Collection | None, wanted: Callable[[Row], bool]) -> tuple[int, int]:
    """How many stored rows would stay and how many would be replaced."""
    kept = replaced = 0
    if main is not None:
        async for page in main.pages():
            hit = sum(wanted(row) for row in page)
            replaced += hit
            kept += len(page) - hit
    return kept, replaced


def _coming(path: Path, wanted: Callable[[Row], bool]) -> frozenset[str]:
    return frozenset(row.id for page in pages(path, 2_000) for row in page if wanted(row))


def _unless_zero(row: Row) -> Row:
    """A row without the zeros that stood for a vector, so that it is embedded now."""
    return row if row.vector is not None and row.vector.any() else Row(row.id, row.document, row.metadata)


def _memos(table: MemoTable | None, path: Path, wanted: Callable[[Row], bool]) -> int:
    if table is None:
        return 0
    done = 0
    for record in _records(path):
        unit = UniId.parse_old(record.key)
        key = unit.key() if unit else record.key
        if not wanted(Row("", None, {PARTITION_KEY: key})):
            continue
        with table.begin() as memos:
            if memos is None:
                return done
            there = memos.read(key)
            if there is None or there.content != record.content:
                version = max(record.version, there.version + 1 if there else 0)
                memos.write(MemoRecord(key, record.content, version, record.updated_at))
                done += 1
    return done


def _records(path: Path) -> Iterator[MemoRecord]:
    for item in elements(path, MEMOS):
        fields = cast("dict[str, Json]", item) if isinstance(item, dict) else {}
        key, content, version = fields.get("user_id"), fields.get("content"), fields.get("version")
        moment: datetime | None = parse_iso(str(fields.get("updated_at")))
        if isinstance(key, str) and isinstance(content, str) and moment is not None:
            yield MemoRecord(key, content, version if isinstance(version, int) else 1, moment)


def _knowledge(data_dir: Path, path: Path) -> int:
    """Write back the knowledge files; names come from the file and may only be those a backup writes."""
    root = FileRoot.open(data_dir)
    done = 0
    for item in elements(path, KNOWLEDGE):
        fields = cast("dict[str, Json]", item) if isinstance(item, dict) else {}
        name, text = fields.get("name"), fields.get("text")
        if isinstance(name, str) and isinstance(text, str) and is_knowledge(name):
            root.write(PurePosixPath(name), text.encode())
            done += name != INDEX
    return done
