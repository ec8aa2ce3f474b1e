"""The quiet part of the story: the background's delay is cut to seconds, the user falls silent, and files are read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from .checks import Finding, excerpt

SECONDS: Final = 3.0  # of silence, where an owner has half an hour
_CONFIG: Final = Path("config") / "amrita_plugin_memory" / "config.toml"
_DATA: Final = Path("data") / "amrita_plugin_memory"
_RELOAD: Final = 3.0  # the host watches the file; it needs a moment to read it
_WITHIN: Final = 180.0


async def shorten(folder: Path) -> None:
    """Have the running bot wait seconds instead of half an hour; it reads the edited file by itself."""
    path = folder / _CONFIG
    text = await asyncio.to_thread(path.read_text, "utf-8")
    lines = [
        f"rethink_base_delay_minutes = {SECONDS / 60}" if line.startswith("rethink_base_delay_minutes") else line
        for line in text.split("\n")
    ]
    await asyncio.to_thread(path.write_text, "\n".join(lines), "utf-8")
    await asyncio.sleep(_RELOAD)


async def finished_run(folder: Path, account: int, *, within: float = _WITHIN) -> dict[str, Any] | None:
    """The record of the first run that came to its end; None when there is none in time."""
    until = asyncio.get_running_loop().time() + within
    while asyncio.get_running_loop().time() < until:
        for record in await asyncio.to_thread(_records, folder, account):
            if record.get("result") == "done":
                return record
        await asyncio.sleep(0.5)
    return None


def findings(folder: Path, account: int, record: dict[str, Any] | None) -> list[tuple[str, Finding]]:
    """What the run left behind, read from the files."""
    if record is None:
        return [("后台在沉默之后整理了一轮", Finding(False, "没有等到整理记录，请看机器人日志里的 [Subconscious]"))]
    steps = [step["tool"].removeprefix("subconscious_") for step in record["steps"]]
    kinds = [effect["kind"] for effect in record["effects"]]
    root = folder / _DATA / "amos"
    profile = _text(root / "users" / f"QQPlatform_Private_{account}" / "profile.md")
    entries = sorted((root / "shared" / "knowledge" / "global").glob("*.md"))
    return [
        ("后台在沉默之后整理了一轮", Finding(True, f"{record['tokens']} tokens：{' → '.join(steps)}")),
        (
            "重复的记忆合并了，留下的一条提了重要性",
            Finding("delete_memory" in steps and "update_memory" in steps, _effects(record)),
        ),
        ("画像写进了 AMOS 根的 profile.md", Finding("profile" in kinds and bool(profile), excerpt(profile))),
        ("知识条目写进了 shared/knowledge", Finding(bool(entries), excerpt(_text(entries[0]) if entries else ""))),
    ]


def _content(state: dict[str, str] | None, nothing: str) -> str:
    return state.get("content", nothing) if state else nothing


def _effects(record: dict[str, Any]) -> str:
    shown: Sequence[str] = [
        f"{_content(effect['before'], '（无）')} → {_content(effect['after'], '（删）')}"
        for effect in record["effects"]
        if effect["kind"] == "fact"
    ]
    return "；".join(shown)


def _records(folder: Path, account: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in sorted((folder / _DATA / "runs" / str(account)).glob("*.json")):
        try:
            found.append(json.loads(path.read_text("utf-8")))
        except ValueError:
            continue
    return found


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""
