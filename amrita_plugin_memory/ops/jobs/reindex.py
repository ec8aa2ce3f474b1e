"""Back up, then embed everything again with the model at hand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection as Several
from dataclasses import replace
from pathlib import Path

from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.ops.backup.shelf import Backup, remove, surplus
from amrita_plugin_memory.ops.backup.write import create
from amrita_plugin_memory.ops.upkeep.names import PENDING
from amrita_plugin_memory.ops.upkeep.rebuild import Rebuild, Rebuilt, announce
from amrita_plugin_memory.ops.upkeep.recover import recover
from amrita_plugin_memory.ops.upkeep.vectors import Vectors
from amrita_plugin_memory.retrieval import GatedStore, SpaceGuard
from amrita_plugin_memory.retrieval.fingerprint import REBUILDING
from amrita_plugin_memory.vectordb.ports import Row

from .place import Place

_log = logging.getLogger("amrita_memory.ops")


async def reindex(place: Place, name: str) -> Rebuilt | None:
    """Rebuild one collection for ``place.embedder``; None when there is none. The facts are backed up before.

    Raises:
        EmbeddingUnavailable: the service stayed down; what is done stays, the next run goes on from there.
        Locked: it is being rebuilt already, or another process holds the store.
        StoreUnavailable: the store or the disk does not answer; nothing is lost.

    """
    await recover(place.store, name)
    collection = await place.store.open(name, create=False)
    if collection is None:
        return None
    if not await collection.count():
        await SpaceGuard(place.embedder).mark(collection)
        return Rebuilt(0, 0, 0, 0, 0.0)
    await announce(collection, place.embedder)
    if name == COLLECTION:
        await back_up(place, reason="reindex")
    text_of = await asyncio.to_thread(place.text_of(name))
    return await Rebuild(
        place.store, name, embedder=place.embedder, pace=place.pace, text_of=text_of, shared=place.is_shared
    ).run()


async def back_up(place: Place, *, reason: str, spare: Several[Path] = ()) -> Backup | None:
    """Write a backup and prune old ones, never those in ``spare``; None when there is no collection.

    Raises:
        StoreUnavailable: it could not be written; then nothing may be changed.

    """
    collection = await place.store.open(COLLECTION, create=False)
    if collection is None:
        return None
    extras = await asyncio.to_thread(place.extras)
    try:
        backup = await create(place.backups, collection, clock=place.pace.clock, extras=extras, reason=reason)
    except StoreUnavailable as e:
        if extras.memos_failed is None:
            raise
        _log.warning("[Memory] 这份备份不含备忘录：%s", e)
        extras = await asyncio.to_thread(replace(place, memos=None).extras)
        backup = await create(place.backups, collection, clock=place.pace.clock, extras=extras, reason=reason)
    await asyncio.to_thread(_prune, place, {*spare, backup.path})
    return backup


def _prune(place: Place, spare: set[Path]) -> None:
    remove(surplus(place.backups, keep=place.env.reembed_backup_keep, spare=spare))


async def heal(place: Place, name: str) -> int:
    """Embed the rows that carry zeros because no vector could be had when they were stored; how many got one.

    Raises:
        EmbeddingUnavailable: the service does not answer.

    """
    collection = await place.store.open(name, create=False)
    if collection is None or not (await collection.metadata()).get(PENDING):
        return 0
    vectors = Vectors(place.embedder, batch=place.pace.batch, sleep=place.pace.sleep)
    await vectors.open()
    text_of = await asyncio.to_thread(place.text_of(name))
    healed = left = 0
    async for page in collection.pages(size=500, vectors=True):
        bare = [row for row in page if row.vector is None or not row.vector.any()]
        found = await vectors.of([text_of(row) for row in bare])
        ready = [_with(row, vector) for row, vector in zip(bare, found, strict=True) if vector is not None]
        await _update(place.store, name, ready)
        healed += len(ready)
        left += len(bare) - len(ready)
    if not left:
        await collection.annotate({PENDING: None, REBUILDING: None})
    return healed


def _with(row: Row, vector: object) -> Row:
    return replace(row, vector=vector)  # pyright: ignore[reportArgumentType]


async def _update(store: GatedStore, name: str, rows: list[Row]) -> None:
    if not rows:
        return
    async with store.alone(name) as collection:
        now = {row.id: row for row in await collection.get([row.id for row in rows])}
        # A row that was edited or deleted meanwhile keeps what its writer gave it.
        same = [row for row in rows if row.id in now and now[row.id].document == row.document]
        if same:
            await collection.update([replace(now[row.id], vector=row.vector) for row in same])
