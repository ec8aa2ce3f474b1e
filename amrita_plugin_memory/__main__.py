"""``amrita-memory`` and ``python -m amrita_plugin_memory``: the door that needs no bot.

A command is imported when it is called, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

import click

from amrita_plugin_memory.ops.cli import COMMANDS as UPKEEP

# name → (where the click command is, what it does)
COMMANDS: Final = {
    "demo": ("amrita_plugin_memory.demo.cli:demo", "不要密钥、不连 QQ，看一遍记忆如何工作"),
    **UPKEEP,
    "amos": ("amrita_plugin_memory.amos.cli:amos", "AMOS-2.0 文件记忆：建立、检索、打包、检查一个根目录"),
}


class LazyGroup(click.Group):
    """A group whose commands are known by name only until one is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, without importing anything."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as e:
            if (e.name or "").startswith("amrita_plugin_memory"):
                raise
            raise click.ClickException(f"缺少依赖包 {e.name}，请运行 uv sync，或用 uv run amrita-memory 启动。") from e

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table."""
        with formatter.section("命令"):
            formatter.write_dl([(name, what) for name, (_, what) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """AmritaBot 长期记忆插件的命令行，不需要启动机器人。"""


if __name__ == "__main__":
    sys.exit(main())
