"""The start-up check on the running host: keys, fingerprint, policy. Beside the bot, unless the owner must be asked."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from amrita_plugin_memory.app import MemoryApp
from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.ops.bot.folder import BotFolder
from amrita_plugin_memory.ops.cli.common import memo_table
from amrita_plugin_memory.ops.jobs.place import Place
from amrita_plugin_memory.ops.jobs.startup import CheckedIn, check_in, must_wait
from amrita_plugin_memory.ops.upkeep.rebuild import Pace
from amrita_plugin_memory.settings import EnvSettings, FileSettings

_log = logging.getLogger("amrita_memory.host")


def place_of(app: MemoryApp, *, env: EnvSettings, file: FileSettings, data_dir: Path) -> Place:
    """Where the check works: the bot's own store and embedder, and the memo rows by plain SQL."""
    try:
        memos = memo_table(BotFolder.read(Path.cwd()))
    except AmritaMemoryError as e:
        _log.warning("[Memory] 备忘录的分区键这次不检查：%s", e)
        memos = None
    return Place(
        store=app.store,
        embedder=app.embedder,
        env=env,
        data_dir=data_dir,
        knowledge=file.subconscious.knowledge_collection_name,
        memos=memos,
        memo_limit=file.memo_max_chars,
        pace=Pace(batch=env.reembed_batch_size),
    )


def is_waited_for(place: Place) -> bool:
    """Whether the bot must not go on before the check is done."""
    return must_wait(place, tty=sys.stdin.isatty())


async def check(place: Place) -> CheckedIn:
    """Run the check and give the database connections back."""
    try:
        return await check_in(place, tty=sys.stdin.isatty(), confirm=_ask)
    finally:
        if place.memos is not None:
            await asyncio.to_thread(place.memos.close)


async def _ask(question: str) -> bool:
    """One question at the bot's own terminal."""
    answer = await asyncio.to_thread(input, f"{question} [y/N] ")
    return answer.strip().lower() in ("y", "yes", "是")
