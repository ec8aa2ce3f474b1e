"""Options every command has, and the way from a bot's folder to an opened store."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from amrita_plugin_memory.kernel.clock import SystemClock
from amrita_plugin_memory.ops.bot.database import MemoTable
from amrita_plugin_memory.ops.bot.folder import BotFolder, database_file

from .output import ACTION, Output, guarded

F = TypeVar("F", bound=Callable[..., Any])


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command with ``--bot``, ``--json`` and ``-o``: called as ``function(bot folder, output, …)``."""

    @click.option("--bot", "bot", type=click.Path(path_type=Path), default=None, help="机器人所在的目录，默认当前目录")
    @click.option("--json", "as_json", is_flag=True, help="输出一个 JSON 对象")
    @click.option("-o", "--output", "json_file", type=click.Path(path_type=Path), default=None, help="把 JSON 写到文件")
    @wraps(function)
    def run(bot: Path | None, as_json: bool, json_file: Path | None, **options: Any) -> None:
        output = Output(as_json, json_file)

        def body() -> None:
            function(BotFolder.read(root_of(bot)), output, **options)

        guarded(output, body)

    return run


def root_of(given: Path | None) -> Path:
    """The bot's folder: the given one, else the nearest one upwards that looks like one, else where we are.

    Raises:
        click.UsageError: the given folder is not there.

    """
    if given is not None:
        if not given.is_dir():
            raise click.UsageError(f"没有目录 {given}，请用 --bot 指向机器人所在的目录")
        return given
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / ".env").is_file() or (folder / "bot.py").is_file():
            return folder
        if (folder / "pyproject.toml").is_file():
            return folder
    return here


def awaited(work: Callable[[], Awaitable[None]]) -> None:
    """Run the asynchronous part of a command."""

    async def main() -> None:
        await work()

    asyncio.run(main())


@asynccontextmanager
async def opened(folder: BotFolder, output: Output, *, writable: bool) -> AsyncGenerator[Any]:
    """The bot's store and embedder as a Place; heavy rooms are imported here and not before.

    A writable place is what a rebuild would use; one for reading keeps to the model the store was built with.

    Raises:
        Locked: the bot runs, or another command is at work.

    """
    from amrita_plugin_memory.embedding import build_embedder
    from amrita_plugin_memory.facts import COLLECTION
    from amrita_plugin_memory.ops.jobs.place import Place
    from amrita_plugin_memory.ops.upkeep.rebuild import Pace
    from amrita_plugin_memory.retrieval import GatedStore, recorded
    from amrita_plugin_memory.vectordb import open_store

    store = GatedStore(await open_store(folder.env, directory=folder.chroma, writable=writable))
    try:
        space = None
        if not writable:
            collection = await store.open(COLLECTION, create=False)
            space = recorded(await collection.metadata()) if collection else None
        embedder = build_embedder(folder.env, recorded=space)
        memos = memo_table(folder)
        try:
            yield Place(
                store=store,
                embedder=embedder,
                env=folder.env,
                data_dir=folder.data_dir,
                knowledge=folder.file.subconscious.knowledge_collection_name,
                memos=memos,
                memo_limit=folder.file.memo_max_chars,
                pace=Pace(batch=folder.env.reembed_batch_size, report=output.report, clock=SystemClock()),
            )
        finally:
            await embedder.aclose()
            if memos is not None:
                memos.close()
    finally:
        await store.aclose()


def memo_table(folder: BotFolder) -> MemoTable | None:
    """The bot's memo rows; None when its database is a file that is not there."""
    file = database_file(folder.database_url, folder.root)
    if file is not None and not file.is_file():
        return None
    return MemoTable(folder.database_url if file is None else f"sqlite:///{file}")


def ask(output: Output, question: str, *, yes: bool) -> None:
    """Go on only with the owner's word; without a terminal ``--yes`` is that word."""
    if yes:
        return
    if output.machine or not sys.stdin.isatty() or os.environ.get("AMRITA_MEMORY_NO_PROMPT"):
        output.fail(f"{question}。确认请加 --yes", code=ACTION)
    if not click.confirm(question, default=False, err=True):
        output.fail("没有确认，什么都没有改动", code=ACTION)
