"""Files of the published plugin, taken over into the AMOS root once; the old files stay as they were."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Final

from amrita_plugin_memory.knowledge import EntryFiles

from .bench import Profiles

_log = logging.getLogger("amrita_memory.subconscious")
_ENTRY: Final = re.compile(r"KNOWLEDGE_([0-9A-Za-z_-]{1,40})\.md")
OLD_PROFILE: Final = "user_profile.md"
MARK: Final = "taken_over.json"


async def take_over(data_dir: Path, *, account: str, profiles: Profiles, files: EntryFiles) -> list[str]:
    """Bring ``user_profile.md`` to the first target's profile and ``knowledge/`` to the shared knowledge.

    What was brought once is written to ``taken_over.json`` and not brought again, so that nothing deleted comes back.

    Returns:
        The names of the files that were brought now.

    """
    done = await asyncio.to_thread(_marked, data_dir)
    found = await asyncio.to_thread(_old_files, data_dir)
    brought: list[str] = []
    for name, text in found.items():
        if name in done:
            continue
        if (entry := _ENTRY.fullmatch(Path(name).name)) is not None:
            if await files.read(entry[1]) is None:
                await files.write(entry[1], text)
        elif account and not await profiles.read(account):
            await profiles.replace(account, text)
        elif not account:
            continue
        brought.append(name)
    if brought:
        await asyncio.to_thread(_mark, data_dir, sorted({*done, *brought}))
        _log.info("[Subconscious] 接收了旧版的 %d 个文件，原文件未动", len(brought))
    return brought


def _old_files(data_dir: Path) -> dict[str, str]:
    paths = [data_dir / OLD_PROFILE, *sorted((data_dir / "knowledge").glob("KNOWLEDGE_*.md"))]
    return {
        path.relative_to(data_dir).as_posix(): path.read_text("utf-8-sig", errors="replace")
        for path in paths
        if path.is_file() and not path.is_symlink()
    }


def _marked(data_dir: Path) -> set[str]:
    try:
        return {str(name) for name in json.loads((data_dir / MARK).read_text("utf-8"))}
    except (OSError, ValueError, TypeError):
        return set()


def _mark(data_dir: Path, names: list[str]) -> None:
    draft = data_dir / f"{MARK}.tmp"
    draft.write_text(json.dumps(names, ensure_ascii=False), "utf-8")
    draft.replace(data_dir / MARK)
