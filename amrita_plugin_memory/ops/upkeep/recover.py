"""After a kill: find what a rebuild left, ours or the published plugin's, and make one whole collection of it.

Nothing is dropped whose rows are not all in another collection.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np

from amrita_plugin_memory.retrieval import GatedStore, match, recorded
from amrita_plugin_memory.vectordb.ports import Collection, Row, Scalar

from .names import BUILDING, COMPLETE, JOB, MERGING, PENDING, STATE, aside_of, generation, rebuild_of

_log = logging.getLogger("amrita_memory.ops")
_PAGE = 500


async def recover(store: GatedStore, name: str) -> list[str]:
    """Mend the collection ``name``; what was done, one sentence each, nothing when all was well.

    Raises:
        StoreUnavailable, Locked: the store cannot be changed now; nothing is lost.

    """
    async with store.hold(name):
        done = await _mend(store, name, set(await store.names()))
    for sentence in done:
        _log.warning("[Memory] %s", sentence)
    return done


async def _mend(store: GatedStore, name: str, names: set[str]) -> list[str]:
    done: list[str] = []
    if aside_of(name) in names:
        done.append(await _after_swap(store, name, names))
        names = set(await store.names())
    if rebuild_of(name) in names:
        done.append(await _left_over(store, name, names))
    main = await store.open(name, create=False)
    if main is not None and (await main.metadata()).get(STATE):
        await main.annotate({STATE: None, JOB: None})
    return [sentence for sentence in done if sentence]


async def _after_swap(store: GatedStore, name: str, names: set[str]) -> str:
    """An old collection stands aside: a swap was begun."""
    aside = await _open(store, aside_of(name))
    new = await store.open(rebuild_of(name), create=False)
    ready = new is not None and (await new.metadata()).get(STATE) in (COMPLETE, MERGING)
    if name not in names:
        if ready:
            await store.rename(rebuild_of(name), name)
            await store.drop(aside.name)
            return "上次重建在最后一步中断，已接着完成，记忆没有丢失"
        await store.rename(aside.name, name)
        return "上次重建在替换时中断，已恢复原来的记忆库"
    main = await _open(store, name)
    if generation(await main.metadata()) > generation(await aside.metadata()) or not await aside.count():
        await store.drop(aside.name)
        return "已清理上次重建留下的旧集合"
    if ready:
        await _merge(store, name, rebuild_of(name))
        await store.drop(aside.name)
    else:
        await _merge(store, name, aside.name)
    return "上次重建在替换时中断，之后又有新的写入，已合并两边的记忆"


async def _left_over(store: GatedStore, name: str, names: set[str]) -> str:
    """A new collection stands beside the old, or alone."""
    left = await _open(store, rebuild_of(name))
    state = (await left.metadata()).get(STATE)
    if name not in names:
        await store.rename(left.name, name)
        return "发现上次重建中断留下的完整记忆，已恢复为现用的记忆库"
    if state in (BUILDING, COMPLETE):
        return ""  # ours: the next reindex goes on from there
    main = await _open(store, name)
    if state == MERGING or (await left.count() and not await _overlap(main, left)):
        await _merge(store, name, left.name)
        return "发现上次重建中断留下的记忆，已与现在的记忆库合并"
    await store.drop(left.name)
    return "已清理旧版插件重建中断留下的半成品，原有记忆没有改动"


async def _merge(store: GatedStore, name: str, orphan_name: str) -> None:
    """Add the rows of ``name`` to the orphan and give the orphan its name; may be run again after a kill."""
    main, orphan = await _open(store, name), await _open(store, orphan_name)
    await orphan.annotate({STATE: MERGING})
    comparable = _comparable(await main.metadata(), await orphan.metadata())
    size = await _dimension(orphan)
    async for page in main.pages(size=_PAGE, vectors=True):
        known = {row.id for row in await orphan.get([row.id for row in page])}
        fresh = [row for row in page if row.id not in known]
        if not fresh:
            continue
        if not comparable:
            await orphan.annotate({PENDING: True})
        await orphan.add([row if comparable and _fits(row, size) else _bare(row, size) for row in fresh])
    await store.drop(name)
    await store.rename(orphan_name, name)
    await (await _open(store, name)).annotate({STATE: None, JOB: None})


def _comparable(one: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> bool:
    space = recorded(one)
    return space is not None and match(other, space) == "same"


def _fits(row: Row, size: int) -> bool:
    return row.vector is not None and row.vector.size == size


def _bare(row: Row, size: int) -> Row:
    return Row(row.id, row.document, row.metadata, np.zeros(size, dtype=np.float32))


async def _dimension(collection: Collection) -> int:
    async for page in collection.pages(size=1, vectors=True):
        vector = page[0].vector
        return int(vector.size) if vector is not None else 0
    return 0


async def _overlap(main: Collection, left: Collection) -> bool:
    async for page in left.pages():
        if await main.get([row.id for row in page]):
            return True
    return False


async def _open(store: GatedStore, name: str) -> Collection:
    collection = await store.open(name)
    assert collection is not None, "open() with create=True gives a collection"
    return collection
