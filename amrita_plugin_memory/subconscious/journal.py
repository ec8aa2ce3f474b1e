"""What each run did, one JSON file a run, so that an owner can read it and undo it.

Files hold contents of memories: 0600, in the plugin's data directory, the newest ``keep`` a target. Functions block.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from amrita_plugin_memory.kernel.errors import Corrupt, InvalidName, NotFound

from .bench import Effect

Result: TypeAlias = Literal["done", "failed", "aborted", "budget"]
KEEP: Final = 50
_ID: Final = re.compile(r"[0-9A-Za-z_-]{1,80}")


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call: what was asked, whether it succeeded, and how long it took (milliseconds)."""

    tool: str
    arguments: Mapping[str, Any]
    status: str
    ms: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run. ``effects`` are in the order they happened; ``reverted_at`` is set by an undo."""

    id: str
    account: str
    started_at: str
    ended_at: str = ""
    result: Result = "done"
    summary: str = ""
    error: str = ""
    tokens: int = 0
    steps: Sequence[Step] = field(default_factory=tuple[Step, ...])
    effects: Sequence[Effect] = field(default_factory=tuple[Effect, ...])
    reverted_at: str = ""


class Journal:
    """Run records below a directory, one folder a target."""

    def __init__(self, directory: Path, *, keep: int = KEEP) -> None:
        self._directory = directory
        self._keep = keep

    def write(self, run: RunRecord) -> None:
        """Store a record whole; the oldest of the target beyond ``keep`` go."""
        folder = self._directory / _checked(run.account)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{_checked(run.id)}.json"
        draft = path.with_suffix(".tmp")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(run), file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        for old in sorted(folder.glob("*.json"))[: -self._keep]:
            old.unlink(missing_ok=True)

    def list(self, account: str | None = None) -> list[RunRecord]:
        """All records, newest first; files that cannot be read are left out."""
        pattern = f"{_checked(account)}/*.json" if account else "*/*.json"
        found: list[RunRecord] = []
        for path in self._directory.glob(pattern):
            try:
                found.append(_read(path))
            except Corrupt:
                continue
        return sorted(found, key=lambda run: run.started_at, reverse=True)

    def erase(self, account: str) -> int:
        """Delete all records of a target; how many there were."""
        folder = self._directory / _checked(account)
        records = list(folder.glob("*.json"))
        shutil.rmtree(folder, ignore_errors=True)
        return len(records)

    def read(self, id: str) -> RunRecord:
        """One record by its id.

        Raises:
            NotFound: there is none.
            Corrupt: it cannot be read.

        """
        for path in self._directory.glob(f"*/{_checked(id)}.json"):
            return _read(path)
        raise NotFound(f"没有编号为 {id} 的整理记录，编号见 runs list")


def _checked(name: str) -> str:
    if not _ID.fullmatch(name):
        raise InvalidName(what="整理记录", name=name, why="只能是字母、数字、横线和下划线")
    return name


def _read(path: Path) -> RunRecord:
    try:
        data = json.loads(path.read_text("utf-8"))
        steps = tuple(Step(**one) for one in data.pop("steps"))
        effects = tuple(Effect(**one) for one in data.pop("effects"))
        return RunRecord(**data, steps=steps, effects=effects)
    except (OSError, ValueError, TypeError, KeyError) as e:
        raise Corrupt(f"整理记录 {path.stem} 无法读取，文件可能已损坏") from e
