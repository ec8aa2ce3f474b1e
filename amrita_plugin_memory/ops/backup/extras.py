"""What a backup holds besides the facts: memos, knowledge files and the profile, under keys of our own. Blocking."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.ops.bot.database import MemoRecord

MEMOS: Final = "memos"
KNOWLEDGE: Final = "knowledge"
INDEX: Final = "knowledge_index.json"
PROFILE: Final = "user_profile.md"
# Knowledge of the published plugin, and of this one on the AMOS root; below the data directory.
FOLDERS: Final = ("knowledge", "amos/shared/knowledge/global")
_STEM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def no_memos() -> Iterable[MemoRecord]:
    """None at all."""
    return ()


@dataclass(slots=True)
class Extras:
    """Where to take them from; the counters are right after ``pieces`` was used up."""

    root: Path = Path()
    memos: Callable[[], Iterable[MemoRecord]] = no_memos
    knowledge: list[str] = field(default_factory=list[str])
    profile: Path | None = None
    memos_written: int = field(default=0, init=False)
    memos_failed: StoreUnavailable | None = field(default=None, init=False)
    knowledge_written: int = field(default=0, init=False)

    @classmethod
    def of(cls, data_dir: Path, memos: Callable[[], Iterable[MemoRecord]] = no_memos) -> Extras:
        """The knowledge and the profile of a data directory; what is not there is left out."""
        profile = data_dir / PROFILE
        names = [name for name in _found(data_dir) if (data_dir / name).is_file()]
        return cls(data_dir, memos, names, profile if profile.is_file() else None)

    def pieces(self) -> Iterator[bytes]:
        """``, "memos": […], "knowledge": […], "profile": "…"`` for the end of the file."""
        yield from _array(MEMOS, self._memos())
        yield from _array(KNOWLEDGE, self._files())
        if self.profile is not None:
            yield b', "profile": ' + _dump(self.profile.read_text("utf-8", "replace"))

    def _memos(self) -> Iterator[dict[str, object]]:
        try:
            for memo in self.memos():
                self.memos_written += 1
                yield {
                    "user_id": memo.key,
                    "content": memo.content,
                    "version": memo.version,
                    "updated_at": memo.updated_at.isoformat(),
                }
        except StoreUnavailable as e:
            self.memos_failed = e
            raise

    def _files(self) -> Iterator[dict[str, object]]:
        for name in self.knowledge:
            self.knowledge_written += name != INDEX
            yield {"name": name, "text": (self.root / name).read_text("utf-8", "replace")}


def is_knowledge(name: str) -> bool:
    """True for a name that ``Extras`` would give a knowledge file, so that nothing else is ever written back."""
    if name == INDEX:
        return True
    folder, _, file = name.rpartition("/")
    return folder in FOLDERS and file.endswith(".md") and _STEM.fullmatch(file[:-3]) is not None


def _found(data_dir: Path) -> list[str]:
    names = [f"{folder}/{path.name}" for folder in FOLDERS for path in sorted((data_dir / folder).glob("*.md"))]
    return [INDEX, *(name for name in names if is_knowledge(name))]


def _array(name: str, items: Iterable[object]) -> Iterator[bytes]:
    yield b", " + _dump(name) + b": ["
    for place, item in enumerate(items):
        yield (b", " if place else b"") + _dump(item)
    yield b"]"


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
