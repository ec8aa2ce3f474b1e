"""``export`` and ``import``: one JSON object a line, for other programs and other bots."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from amrita_plugin_memory.kernel.errors import NotFound
from amrita_plugin_memory.ops.bot.folder import BotFolder

from .common import ask, awaited, command, opened
from .look import unit_of
from .output import OK, PARTIAL, Output


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--user", default="", help="只导出这个 QQ 号")
@click.option("--group", default="", help="只导出这个群")
@click.option("--scope", "key", default="", help="只导出这个归属")
@command
def export(folder: BotFolder, output: Output, *, file: Path | None, user: str, group: str, key: str) -> None:
    """把记忆和备忘录写成 NDJSON；不给文件名则写到标准输出。"""
    unit = unit_of(key, user, group)

    async def work() -> None:
        from amrita_plugin_memory.ops.jobs.transfer import write_lines

        async with opened(folder, output, writable=False) as place:
            if file is None:
                await write_lines(place, sys.stdout.write, only=unit)
                return
            counts = await write_lines(place, file, only=unit)
            output.finish(
                {"file": str(file), **counts}, f"已导出到 {file}：{counts['facts']} 条记忆，{counts['memos']} 份备忘录"
            )

    awaited(work)


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="只检查文件并说会做什么")
@click.option("--yes", is_flag=True, help="不再询问")
@command
def import_(folder: BotFolder, output: Output, *, file: Path, dry_run: bool, yes: bool) -> None:
    """把 NDJSON 里的记忆加进来；已有的（编号或内容相同）不会重复。"""
    if not file.is_file():
        raise NotFound(f"没有文件 {file}")
    if not dry_run:
        ask(output, f"将导入 {file.name}，继续吗", yes=yes)

    async def work() -> None:
        from amrita_plugin_memory.ops.jobs.transfer import read_lines

        async with opened(folder, output, writable=not dry_run) as place:
            done: dict[str, Any] = await read_lines(place, file, dry_run=dry_run)
            verb = "会导入" if dry_run else "已导入"
            text = f"{verb} {done['added']} 条，已有 {done['known']} 条，不能用的 {done['bad']} 行"
            output.finish({"dry_run": dry_run, **done}, text, code=PARTIAL if done["bad"] else OK)

    awaited(work)
