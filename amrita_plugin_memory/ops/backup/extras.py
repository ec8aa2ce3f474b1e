"""What a backup holds besides the facts: memos, knowledge files and the profile, under keys of our own. Blocking."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.ops.bot.database import MemoRecord

MEMOS: Final = "memos"
KNOWLEDGE: Final = "knowledge"
INDEX: Final = "knowledge_index.json"
FOLDER: Final = "knowledge"
PROFILE: Final = "user_profile.md"


def no_memos() -> Iterable[MemoRecord]:
    """None at all."""
    return ()


@dataclass(slots=True)
class Extras:
    """Where to take them from; the counters are right after ``pieces`` was used up."""

    memos: Callable[[], Iterable[MemoRecord]] = no_memos
    knowledge: list[Path] = field(default_factory=list[Path])
    profile: Path | None = None
    memos_written: int = field(default=0, init=False)
    memos_failed: StoreUnavailable | None = field(default=None, init=False)
    knowledge_written: int = field(default=0, init=False)

    @classmethod
    def of(cls, data_dir: Path, memos: Callable[[], Iterable[MemoRecord]] = no_memos) -> Extras:
        """The knowledge and the profile of a data directory; what is not there is left out."""
        folder = data_dir / FOLDER
        files = sorted(folder.glob("KNOWLEDGE_*.md")) if folder.is_dir() else []
        index = data_dir / INDEX
        profile = data_dir / PROFILE
        return cls(memos, [*([index] if index.is_file() else []), *files], profile if profile.is_file() else None)

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
        for path in self.knowledge:
            self.knowledge_written += path.name != INDEX
            yield {"name": path.name, "text": path.read_text("utf-8", "replace")}


def _array(name: str, items: Iterable[object]) -> Iterator[bytes]:
    yield b", " + _dump(name) + b": ["
    for place, item in enumerate(items):
        yield (b", " if place else b"") + _dump(item)
    yield b"]"


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
