"""Bring the keys of facts and memos to today's form: paged, and without harm to run again."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from amrita_plugin_memory.facts.keys import Skipped, plan, renew
from amrita_plugin_memory.ops.bot.database import MemoRecord, Memos, MemoTable
from amrita_plugin_memory.vectordb.ports import Collection

from .names import KEY_VERSION, KEYS_NOW
from .progress import Meter

EXAMPLES: Final = 20


@dataclass(slots=True)
class Moved:
    """What was, or with ``dry_run`` would be, done. ``renamed`` maps old keys to new ones, at most a few of them."""

    scanned: int = 0
    facts: int = 0
    memos: int = 0
    merged: int = 0
    dry_run: bool = False
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    skipped: list[Skipped] = field(default_factory=list[Skipped])

    def skip(self, one: Skipped) -> None:
        """Count a row that stays; the first few are kept as examples."""
        self.reasons[one.reason] += 1
        if len(self.skipped) < EXAMPLES:
            self.skipped.append(one)

    def rename(self, old: str, new: str) -> None:
        """Remember a pair, of the first few."""
        if len(self.renamed) < EXAMPLES:
            self.renamed[old] = new


async def migrate(
    collection: Collection | None, memos: MemoTable | None, *, limit: int, meter: Meter, dry_run: bool = False
) -> Moved:
    """Move every fact and memo that has an old key. ``limit`` is the longest memo a merge may make.

    Raises:
        StoreUnavailable: the store or the database does not answer; what was moved stays moved, run it again.

    """
    done = Moved(dry_run=dry_run)
    meter.start()
    if collection is not None:
        await _facts(collection, done, meter)
    if memos is not None:
        await asyncio.to_thread(_memos, memos, done, limit)
    return done


async def _facts(collection: Collection, done: Moved, meter: Meter) -> None:
    async for rows in collection.pages(size=2_000):
        step = plan(rows)
        done.scanned += len(rows)
        done.facts += len(step.changed)
        for old, new in step.renamed.items():
            done.rename(old, new)
        for one in step.skipped:
            done.skip(one)
        if step.changed and not done.dry_run:
            await collection.update(step.changed)
        meter.step(len(rows))
    if not done.dry_run:
        await collection.annotate({KEY_VERSION: KEYS_NOW})


def _memos(table: MemoTable, done: Moved, limit: int) -> None:
    for row in list(_old(table, done)):
        new = renew(row.key)
        assert isinstance(new, str), "only rows with a new key are in the list"
        with table.begin() as memos:
            if memos is not None:
                _move_memo(memos, row, new, (done, limit))


def _old(table: MemoTable, done: Moved) -> list[MemoRecord]:
    found: list[MemoRecord] = []
    for row in table.rows():
        new = renew(row.key)
        if isinstance(new, Skipped):
            done.skip(Skipped("备忘录", new.key, new.reason))
        elif new != row.key:
            found.append(row)
    return found


def _move_memo(memos: Memos, old: MemoRecord, key: str, report: tuple[Moved, int]) -> None:
    done, limit = report
    there = memos.read(key)
    content = old.content if there is None else united(there.content, old.content)
    if there is not None and len(content) > max(limit, len(there.content)):
        done.skip(Skipped("备忘录", old.key, f"与 {key} 的备忘录合并后有 {len(content)} 字，超过上限 {limit} 字"))
        return
    done.memos += 1
    done.merged += there is not None
    done.rename(old.key, key)
    if done.dry_run:
        return
    newest = max(old.updated_at, there.updated_at) if there else old.updated_at
    version = max(old.version, there.version if there else 0) + 1
    memos.write(replace(old, key=key, content=content, version=version, updated_at=newest))
    memos.delete(old.key)


def united(first: str, second: str) -> str:
    """Both texts, first one first, without lines of the second that the first has already."""
    known = {line.strip() for line in first.splitlines()}
    extra = [line for line in second.splitlines() if line.strip() and line.strip() not in known]
    return "\n".join([first.rstrip("\n"), *extra]) if extra else first
