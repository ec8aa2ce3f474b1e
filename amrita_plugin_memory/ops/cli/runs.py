"""``runs list|show|revert``: what L3 did, and its undo."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

import click

from amrita_plugin_memory.kernel.text import cut, one_line
from amrita_plugin_memory.ops.bot.folder import BotFolder

from .common import ask, awaited, command, opened
from .output import OK, PARTIAL, Output

if TYPE_CHECKING:
    from amrita_plugin_memory.subconscious.journal import RunRecord

_RESULTS: Final = {"done": "完成", "failed": "失败", "aborted": "被聊天打断", "budget": "预算用完"}
_KINDS: Final = {"fact": "记忆", "knowledge": "知识", "profile": "画像", "memo": "备忘录"}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def runs() -> None:
    """离线巩固循环的整理记录：查看每一轮做了什么，撤销一轮。"""


@runs.command("list")
@click.option("--user", default="", help="只看这个 QQ 号")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="最多几轮")
@command
def list_(folder: BotFolder, output: Output, *, user: str, limit: int) -> None:
    """列出最近的整理，新的在前。"""
    from amrita_plugin_memory.ops.jobs.runs import journal_of

    found = journal_of(folder.data_dir).list(user or None)[:limit]
    text = "\n".join(_line(one) for one in found) or "还没有整理记录"
    output.finish({"runs": [_brief(one) for one in found]}, text)


@runs.command()
@click.argument("run_id")
@command
def show(folder: BotFolder, output: Output, *, run_id: str) -> None:
    """显示一轮的每一步和每处改动。"""
    from amrita_plugin_memory.ops.jobs.runs import journal_of

    record = journal_of(folder.data_dir).read(run_id)
    output.finish(asdict(record), "\n".join(_detail(record)))


@runs.command()
@click.argument("run_id")
@click.option("--dry-run", is_flag=True, help="只说会撤销什么")
@click.option("--yes", is_flag=True, help="不再询问")
@command
def revert(folder: BotFolder, output: Output, *, run_id: str, dry_run: bool, yes: bool) -> None:
    """撤销一轮整理：按相反的顺序恢复每处改动，之后又被改过的不动。请先停止机器人。"""
    from amrita_plugin_memory.ops.jobs.runs import journal_of

    journal = journal_of(folder.data_dir)
    record = journal.read(run_id)
    if dry_run:
        output.finish({"effects": len(record.effects)}, "\n".join(_effects(record)) or "这一轮没有改动")
    ask(output, f"将撤销 {record.started_at} 的 {len(record.effects)} 处改动，继续吗", yes=yes)

    async def work() -> None:
        from amrita_plugin_memory.ops.jobs.runs import revert as take_back

        async with opened(folder, output, writable=True) as place:
            done = await take_back(place, record, max_chars=folder.file.subconscious.knowledge_max_chars)
            now = place.pace.clock.now().isoformat(timespec="seconds")
        journal.write(replace(record, reverted_at=now))
        lines = [f"已撤销 {done.undone} 处改动", *done.skipped]
        code = PARTIAL if done.skipped else OK
        output.finish({"undone": done.undone, "skipped": list(done.skipped)}, "\n".join(lines), code=code)

    awaited(work)


def _brief(record: RunRecord) -> dict[str, Any]:
    whole = asdict(record)
    return {**{k: v for k, v in whole.items() if k not in ("steps", "effects")}, "effects": len(record.effects)}


def _line(record: RunRecord) -> str:
    state = "已撤销" if record.reverted_at else _RESULTS[record.result]
    summary = cut(one_line(record.summary or record.error), 50)
    return f"{record.id}  {state}  {len(record.effects)} 处改动  {record.tokens} tokens  {summary}"


def _detail(record: RunRecord) -> list[str]:
    steps = [f"  {step.tool} → {step.status}（{step.ms} 毫秒）" for step in record.steps]
    return [_line(record), "步骤：", *steps, "改动：", *(_effects(record) or ["  没有"])]


def _effects(record: RunRecord) -> list[str]:
    return [
        f"  {_KINDS[effect.kind]} {effect.id[:8]}：{_side(effect.before)} → {_side(effect.after)}"
        for effect in record.effects
    ]


def _side(state: Any) -> str:
    if state is None:
        return "（无）"
    text = state.get("content") or state.get("text") or state.get("title") or ""
    importance = f"[{state['importance']}] " if state.get("importance") else ""
    return importance + cut(one_line(str(text)), 40)
