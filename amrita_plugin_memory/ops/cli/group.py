"""The command group, whose commands are known by name only until one is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

_HERE: Final = "amrita_plugin_memory.ops.cli"
# name → (where the click command is, what it does)
COMMANDS: Final = {
    "status": (f"{_HERE}.status:status", "看记忆库的状态：条数、嵌入指纹、备份"),
    "doctor": (f"{_HERE}.doctor:doctor", "逐项检查配置、数据库、嵌入服务，给出修法"),
    "search": (f"{_HERE}.look:search", "在某个人或某个群的记忆里查找"),
    "stats": (f"{_HERE}.look:stats", "统计记忆：按范围、重要性、月份、标签"),
    "backup": (f"{_HERE}.backup:backup", "备份：create list verify restore prune"),
    "reindex": (f"{_HERE}.upkeep:reindex", "用现在的嵌入模型重建全部向量"),
    "migrate-keys": (f"{_HERE}.upkeep:migrate_keys", "把旧的分区键迁移到现在的格式"),
    "reset-fingerprint": (f"{_HERE}.upkeep:reset_fingerprint", "只改指纹、不重建（确知模型没变时用）"),
    "runs": (f"{_HERE}.runs:runs", "潜意识的整理记录：list show revert"),
    "export": (f"{_HERE}.transfer:export", "导出记忆为 NDJSON"),
    "import": (f"{_HERE}.transfer:import_", "从 NDJSON 导入记忆"),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is called. ``table``: name → (``module:attribute``, what it does)."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, without importing anything."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name; a package that is not installed is named in one sentence."""
        if cmd_name not in self._table:
            return None
        module, _, attribute = self._table[cmd_name][0].partition(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as e:
            if (e.name or "").startswith("amrita_plugin_memory"):
                raise
            raise click.ClickException(f"缺少依赖包 {e.name}，请运行 uv sync，或用 uv run amrita-memory 启动。") from e

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table."""
        with formatter.section("命令"):
            formatter.write_dl([(name, what) for name, (_, what) in self._table.items()])


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
def memory() -> None:
    """长期记忆的维护命令；机器人运行时可以查看，会改动数据的命令请先停止机器人。"""
