"""``amrita-memory`` and ``python -m amrita_plugin_memory``: the door that needs no bot.

A command is imported when it is called, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from typing import Final

import click

from amrita_plugin_memory.ops.cli.group import COMMANDS as UPKEEP
from amrita_plugin_memory.ops.cli.group import LazyGroup

# name → (where the click command is, what it does)
COMMANDS: Final = {
    "demo": ("amrita_plugin_memory.demo.cli:demo", "不要密钥、不连 QQ，看一遍记忆如何工作"),
    **UPKEEP,
    "amos": ("amrita_plugin_memory.amos.cli:amos", "AMOS-2.0 文件记忆：建立、检索、打包、检查一个根目录"),
}


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """AmritaBot 长期记忆插件的命令行，不需要启动机器人。"""


if __name__ == "__main__":
    sys.exit(main())
