"""``backup create | list | verify | restore | prune``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.ops.backup.read import Checked, check
from amrita_plugin_memory.ops.backup.shelf import Backup, find, listed, remove, surplus
from amrita_plugin_memory.ops.bot.folder import BotFolder

from .common import ask, awaited, command, opened
from .output import FAILED, OK, PARTIAL, Output


@click.group()
def backup() -> None:
    """备份记忆：创建、列出、校验、恢复、清理。"""


@backup.command()
@command
def create(folder: BotFolder, output: Output) -> None:
    """把全部记忆、备忘录和知识写进一个备份文件。机器人运行时也可以。"""

    async def work() -> None:
        from amrita_plugin_memory.ops.jobs.reindex import back_up

        async with opened(folder, output, writable=False) as place:
            made = await back_up(place, reason="manual")
            if made is None:
                output.finish({"file": None, "rows": 0}, "还没有记忆，没有可备份的内容")
            output.finish(_shown(made), f"已备份到 {made.path}（{made.bytes / 1024:.0f} KB）")

    awaited(work)


@backup.command("list")
@command
def list_(folder: BotFolder, output: Output) -> None:
    """列出备份，新的在前。"""
    found = listed(folder.backups)
    lines = [
        f"{one.path.name}  {one.bytes / 1024:>9.0f} KB  {'有清单' if one.manifest.is_file() else '旧版'}"
        for one in found
    ]
    output.finish({"backups": [_shown(one) for one in found]}, "\n".join(lines) or "还没有备份")


@backup.command()
@click.argument("file", required=False)
@click.option("--deep/--quick", default=True, help="--quick 不比对校验值")
@command
def verify(folder: BotFolder, output: Output, *, file: str | None, deep: bool) -> None:
    """校验一份备份；不给文件名则校验全部。"""
    paths = [find(folder.backups, file)] if file else [one.path for one in listed(folder.backups)]
    results = [_verified(path, deep=deep) for path in paths]
    bad = [one for one in results if not one["ok"]]
    lines = [f"{'✅' if one['ok'] else '❌'} {one['file']}  {one['say']}" for one in results]
    output.finish({"backups": results}, "\n".join(lines) or "还没有备份", code=FAILED if bad else OK)


@backup.command()
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="只检查备份并说会做什么")
@click.option("--only-scope", default="", help="只恢复 user、group，或一个归属（如 QQPlatform_Private_123）")
@click.option("--yes", is_flag=True, help="不再询问")
@command
def restore(folder: BotFolder, output: Output, *, file: str, dry_run: bool, only_scope: str, yes: bool) -> None:
    """用一份备份替换现在的记忆（先自动备份现在的），用现在的模型重新嵌入。"""
    path = find(folder.backups, file)
    if not dry_run:
        ask(output, f"将用 {path.name} 替换{'现在的' if not only_scope else only_scope + ' 的'}记忆，继续吗", yes=yes)

    async def work() -> None:
        from amrita_plugin_memory.ops.jobs.restore import restore as run

        async with opened(folder, output, writable=not dry_run) as place:
            done = await run(place, path, only=only_scope, dry_run=dry_run)
            without = done.rebuilt.without if done.rebuilt else 0
            code = PARTIAL if done.checked.problems or without else OK
            data: dict[str, Any] = {
                "dry_run": dry_run,
                "file": str(path),
                "rows": done.rows,
                "kept": done.kept,
                "replaced": done.replaced,
                "memos": done.memos if not dry_run else done.checked.memos,
                "knowledge": done.knowledge if not dry_run else done.checked.knowledge,
                "backup": str(done.backup.path) if done.backup else None,
                "without_vector": without,
                "problems": list(done.checked.problems),
            }
            verb = "会恢复" if dry_run else "已恢复"
            text = f"{verb} {done.rows} 条记忆，替换 {done.replaced} 条，其余 {done.kept} 条不动"
            text += "" if dry_run else f"；备忘录 {done.memos} 份，知识 {done.knowledge} 条"
            output.finish(data, "\n".join([text, *done.checked.problems]), code=code)

    awaited(work)


@backup.command()
@click.option("--keep", type=click.IntRange(min=1), default=None, help="保留几份，默认 REEMBED_BACKUP_KEEP")
@click.option("--dry-run", is_flag=True, help="只说会删哪些")
@command
def prune(folder: BotFolder, output: Output, *, keep: int | None, dry_run: bool) -> None:
    """删掉多余的旧备份。"""
    paths = surplus(folder.backups, keep=keep or folder.env.reembed_backup_keep)
    if not dry_run:
        remove(paths)
    names = [path.name for path in paths]
    verb = "会删除" if dry_run else "已删除"
    output.finish(
        {"dry_run": dry_run, "removed": names}, "\n".join(f"{verb} {name}" for name in names) or "没有多余的备份"
    )


def _shown(one: Backup) -> dict[str, Any]:
    return {
        "file": one.path.name,
        "path": str(one.path),
        "made": one.made.isoformat(),
        "bytes": one.bytes,
        "manifest": one.manifest.is_file(),
    }


def _verified(path: Path, *, deep: bool) -> dict[str, Any]:
    try:
        found = check(path, deep=deep)
    except AmritaMemoryError as e:
        return {"file": path.name, "ok": False, "say": str(e)}
    return {
        "file": path.name,
        "ok": True,
        "say": _words(found),
        "rows": found.tally.rows,
        "problems": list(found.problems),
    }


def _words(found: Checked) -> str:
    scopes = found.tally.scopes
    text = f"{found.tally.rows} 条（个人 {scopes['user']}，群 {scopes['group']}），备忘录 {found.memos} 份"
    return "；".join([text, *found.problems]) + ("" if found.manifest else "；没有清单，只检查了结构")
