"""The undo of a run of L3, without the bot: the same services, the memo over plain SQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from amrita_plugin_memory.amos import AMOS
from amrita_plugin_memory.app.l3 import ROOT, RUNS, SYSTEM
from amrita_plugin_memory.facts import Facts
from amrita_plugin_memory.kernel.errors import InvalidInput, StoreUnavailable
from amrita_plugin_memory.kernel.scope import Caller, UniId
from amrita_plugin_memory.knowledge import AmosEntryFiles, Knowledge
from amrita_plugin_memory.memo import Memo, MemoRow, Stamp
from amrita_plugin_memory.ops.bot.database import MemoRecord, Memos, MemoTable
from amrita_plugin_memory.retrieval import Recall
from amrita_plugin_memory.subconscious.journal import Journal, RunRecord
from amrita_plugin_memory.subconscious.revert import Reverted, Reverter
from amrita_plugin_memory.subconscious.transcripts import AmosProfiles

from .place import Place


class TableMemoStore:
    """Memos in the bot's table, one transaction a change."""

    def __init__(self, table: MemoTable) -> None:
        self._table = table

    async def stamp(self, key: str) -> Stamp | None:
        """See MemoStore."""
        row = await self.read(key)
        return Stamp(row.version, row.updated_at) if row else None

    async def read(self, key: str) -> MemoRow | None:
        """See MemoStore."""
        return await asyncio.to_thread(self._read, key)

    async def change(self, key: str, edit: Callable[[str], str]) -> MemoRow:
        """See MemoStore."""
        return await asyncio.to_thread(self._change, key, edit)

    def _read(self, key: str) -> MemoRow | None:
        with self._table.begin() as memos:
            record = memos.read(key) if memos else None
        return MemoRow(key, record.content, record.version, record.updated_at) if record else None

    def _change(self, key: str, edit: Callable[[str], str]) -> MemoRow:
        with self._table.begin() as memos:
            if memos is None:
                raise StoreUnavailable("机器人的数据库还没有备忘录表，请先运行 ambot orm upgrade")
            return _replaced(memos, key, edit)


def _replaced(memos: Memos, key: str, edit: Callable[[str], str]) -> MemoRow:
    old = memos.read(key)
    now = datetime.now(UTC)
    record = MemoRecord(key, edit(old.content if old else ""), old.version + 1 if old else 1, now)
    memos.write(record)
    return MemoRow(key, record.content, record.version, now)


def journal_of(data_dir: Path) -> Journal:
    """The run records of a bot."""
    return Journal(data_dir / RUNS)


async def revert(place: Place, record: RunRecord, *, max_chars: int) -> Reverted:
    """Take a run's effects back and mark the record.

    Raises:
        InvalidInput: it was taken back before, or the bot has no database to put a memo back into.

    """
    if record.reverted_at:
        raise InvalidInput(f"这一轮已在 {record.reverted_at} 撤销过")
    if place.memos is None and any(effect.kind == "memo" for effect in record.effects):
        raise InvalidInput("这一轮改过备忘录，但找不到机器人的数据库，请检查 --bot 和 SQLALCHEMY_DATABASE_URL")
    clock, recall = place.pace.clock, Recall(place.embedder)
    facts = Facts(store=place.store, embedder=place.embedder, recall=recall, clock=clock, limit=lambda: 1)
    amos = await AMOS.create(root_dir=place.data_dir / ROOT, actor=SYSTEM, clock=clock)
    try:
        knowledge = Knowledge(
            files=AmosEntryFiles(amos.handle),
            store=place.store,
            embedder=place.embedder,
            recall=recall,
            clock=clock,
            collection=place.knowledge,
            max_chars=lambda: max_chars,
        )
        memo = Memo(TableMemoStore(place.memos or MemoTable("sqlite://")), limit=lambda: place.memo_limit)
        reverter = Reverter(facts=facts, memo=memo, profiles=AmosProfiles(amos), knowledge=knowledge)
        caller = Caller(UniId.private(record.account), door="cli")
        return await reverter.revert(caller, record.effects)
    finally:
        await amos.close()
