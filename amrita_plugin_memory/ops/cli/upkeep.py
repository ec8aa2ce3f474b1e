"""``reindex``, ``migrate-keys`` and ``reset-fingerprint``: what changes the store as a whole."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from amrita_plugin_memory.ops.bot.folder import BotFolder
from amrita_plugin_memory.ops.upkeep.keys import Moved, migrate
from amrita_plugin_memory.ops.upkeep.progress import Meter

from .common import ask, awaited, command, opened
from .output import OK, PARTIAL, Output, duration


@click.command()
@click.option("--yes", is_flag=True, help="不再询问")
@click.option("--dry-run", is_flag=True, help="只说会做什么")
@command
def reindex(folder: BotFolder, output: Output, *, yes: bool, dry_run: bool) -> None:
    """用现在配置的嵌入模型重建全部向量。原有数据在新的完整之前不动；中断后再运行会接着做。"""
    if not dry_run:
        ask(output, "将备份并重建全部记忆的向量，继续吗", yes=yes)

    async def work() -> None:
        async with opened(folder, output, writable=not dry_run) as place:
            if dry_run:
                rows = {name: await _count(place, name) for name in place.collections}
                output.finish({"dry_run": True, "rows": rows}, f"会重建 {sum(rows.values())} 条，什么都没有改动")
            await _rebuild(place, output)

    awaited(work)


async def _rebuild(place: Any, output: Output) -> None:
    from amrita_plugin_memory.ops.jobs.reindex import reindex as run

    output.say("正在备份，然后重建…")
    done = {name: await run(place, name) for name in place.collections}
    facts = done[place.collections[0]]
    without = sum(one.without for one in done.values() if one)
    rows = sum(one.rows for one in done.values() if one)
    text = f"重建完成：{rows} 条，用时 {duration(facts.seconds if facts else 0)}"
    if without:
        text += f"；其中 {without} 条嵌入服务不接受，只能按字词找到"
    data = {name: asdict(one) if one else None for name, one in done.items()}
    output.finish(data, text, code=PARTIAL if without else OK)


async def _count(place: Any, name: str) -> int:
    collection = await place.store.open(name, create=False)
    return await collection.count() if collection else 0


@click.command("migrate-keys")
@click.option("--dry-run", is_flag=True, help="只说会做什么")
@command
def migrate_keys(folder: BotFolder, output: Output, *, dry_run: bool) -> None:
    """把旧版的分区键（user_123、纯号码等）迁移到现在的格式，记忆和备忘录都迁移；可以重复运行。"""

    async def work() -> None:
        from amrita_plugin_memory.facts import COLLECTION
        from amrita_plugin_memory.ops.upkeep.recover import recover

        async with opened(folder, output, writable=not dry_run) as place:
            if not dry_run:
                await recover(place.store, COLLECTION)
            collection = await place.store.open(COLLECTION, create=False)
            meter = Meter("keys", await collection.count() if collection else 0, place.pace.clock, output.report)
            done = await migrate(collection, place.memos, limit=place.memo_limit, meter=meter, dry_run=dry_run)
            output.finish(_moved(done), _moved_text(done), code=PARTIAL if done.reasons else OK)

    awaited(work)


def _moved(done: Moved) -> dict[str, Any]:
    return {
        "dry_run": done.dry_run,
        "scanned": done.scanned,
        "facts": done.facts,
        "memos": done.memos,
        "merged_memos": done.merged,
        "renamed": done.renamed,
        "skipped": dict(done.reasons),
        "examples": [asdict(one) for one in done.skipped],
    }


def _moved_text(done: Moved) -> str:
    verb = "会迁移" if done.dry_run else "已迁移"
    lines = [
        f"{verb}：记忆 {done.facts} 条，备忘录 {done.memos} 份（其中合并 {done.merged} 份），共查看 {done.scanned} 条"
    ]
    lines += [f"  {old} → {new}" for old, new in done.renamed.items()]
    lines += [f"没有迁移 {count} 条：{reason}" for reason, count in done.reasons.items()]
    return "\n".join(lines)


@click.command("reset-fingerprint")
@click.option("--yes", is_flag=True, help="不再询问")
@command
def reset_fingerprint(folder: BotFolder, output: Output, *, yes: bool) -> None:
    """只把指纹改成现在的模型，不重建向量。只在确知模型没有变时使用，否则检索会错乱。"""
    ask(output, "向量不会重建；如果模型其实变了，检索会错乱。继续吗", yes=yes)

    async def work() -> None:
        from amrita_plugin_memory.ops.jobs.reset import reset

        async with opened(folder, output, writable=True) as place:
            done = [name for name in place.collections if await reset(place, name)]
            output.finish({"collections": done}, f"指纹已改为现在的模型：{'、'.join(done) or '没有集合'}")

    awaited(work)
