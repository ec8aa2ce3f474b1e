"""The turns of sessions: add, read, change or delete one. Every function blocks and takes the scope it is for.

Adding costs the same however long the session is: the number of the last turn is in the last bytes of the file and the
number of the first is remembered, so nothing is read again. Reading costs what was added since the last reading.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from amrita_plugin_memory.amos.ground import FileRoot, Stamp, layout
from amrita_plugin_memory.amos.ground.formats import load_lines
from amrita_plugin_memory.amos.types import PromptMessage
from amrita_plugin_memory.kernel.errors import InvalidInput, LimitReached
from amrita_plugin_memory.kernel.scope import Scope

from . import compaction, turns
from .tail import Tails
from .turns import Turn

MAX_MESSAGE: Final = 200_000  # characters of one message
_Change = Callable[[Turn], Turn | None]
_END: Final = 64  # bytes in which the number of the last turn stands


@dataclass(frozen=True, slots=True)
class Added:
    """A turn that is on the disk, and how many uncompressed turns its session holds now (never too few)."""

    id: str
    turns: int


@dataclass(slots=True)
class Sessions:
    """Turns below one file root; safe between threads and processes."""

    files: FileRoot
    max_message: int = MAX_MESSAGE
    _tails: Tails = field(init=False)
    _before: dict[PurePosixPath, tuple[int, int]] = field(default_factory=dict[PurePosixPath, tuple[int, int]])
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._tails = Tails(self.files)

    def add(self, scope: Scope, user: str, assistant: str, ts: str) -> Added:
        """Append one turn, synced to the disk when this returns.

        Raises:
            InvalidInput: a message is no text.
            LimitReached: a message is longer than ``max_message``.

        """
        for text in (user, assistant):
            self._check(text)
        rel, turn_id = layout.messages(scope), secrets.token_hex(8)
        held: list[int] = []

        def lines(stamp: Stamp, end: bytes) -> bytes:
            number, before = self._next_number(rel, stamp, end)
            held.append(number - before)
            return turns.new_lines(user, assistant, ts=ts, id=turn_id, number=number)

        with self.files.lock(rel):
            compaction.recover(self.files, scope)
            self.files.extend(rel, _END, lines)
        return Added(turn_id, held[0])

    def prompt(self, scope: Scope) -> list[PromptMessage]:
        """Every uncompressed message of the session, in order."""
        tail = self._tails.get(layout.messages(scope))
        return [] if tail is None else tail.prompt()

    def settle(self, scope: Scope) -> None:
        """Finish a compression that a killed process began; waits for one that is being written now."""
        if compaction.is_pending(self.files, scope):
            with self.files.lock(layout.messages(scope)):
                compaction.recover(self.files, scope)

    def turns(self, scope: Scope) -> list[Turn]:
        """Every uncompressed turn."""
        tail = self._tails.get(layout.messages(scope))
        return [] if tail is None else turns.group(tail.all_lines())

    def count(self, scope: Scope) -> int:
        """How many uncompressed turns there are."""
        tail = self._tails.get(layout.messages(scope))
        return 0 if tail is None else turns.count(tail.all_lines())

    def recent(self, scope: Scope, limit: int) -> list[dict[str, Any]]:
        """The last ``limit`` messages as they are stored, each with the id of its turn."""
        if limit < 0:
            raise InvalidInput("limit 不能是负数")
        tail = self._tails.get(layout.messages(scope))
        if tail is None or limit == 0:
            return []
        lines = tail.all_lines()[
            -2 * limit - 64 :
        ]  # more than enough for damaged lines and the start of the first turn
        return [record for turn in turns.group(lines) for record in turn.records][-limit:]

    def delete(self, scope: Scope, turn_id: str) -> bool:
        """Take one turn out, from the session or its archive; False when no turn has this id."""
        return self._rewrite(scope, turn_id, lambda _: None)

    def edit(self, scope: Scope, turn_id: str, user: str | None, assistant: str | None) -> bool:
        """Replace what was said in one turn, in the session or its archive; False when no turn has this id."""
        for text in (user, assistant):
            self._check("" if text is None else text)
        return self._rewrite(scope, turn_id, lambda turn: turns.edited(turn, user, assistant))

    def names(self, home: PurePosixPath) -> list[str]:
        """Sessions of a user or agent folder, sorted."""
        return self.files.dirs(home / "sessions")

    def archives(self, scope: Scope) -> list[str]:
        """Archive files of the session, oldest day first, relative to the root."""
        folder = layout.archive_dir(scope)
        return [str(folder / name) for name in self.files.names(folder) if name.endswith(".jsonl")]

    def forget(self, scope: Scope) -> bool:
        """Delete a session with its summary and archive; False when there was none."""
        folder = layout.session_dir(scope)
        if scope.session not in self.files.dirs(folder.parent):
            return False
        with self.files.lock(layout.messages(scope)):
            return self.files.delete_tree(folder)

    def _check(self, text: object) -> None:
        if not isinstance(text, str):
            raise InvalidInput("消息必须是文字")
        if len(text) > self.max_message:
            raise LimitReached(f"单条消息最多 {self.max_message} 字，这条有 {len(text)} 字，请分开保存")

    def _next_number(self, rel: PurePosixPath, stamp: Stamp, end: bytes) -> tuple[int, int]:
        """The number of the next turn, and how many of the numbers up to it are no turns of the file."""
        if stamp.size == 0:
            return 1, 0
        last = turns.last_number(end)
        with self._guard:
            known, before = self._before.get(rel, (0, 0))
        if last is None or known != stamp.inode:
            tail = self._tails.get(rel)
            held = 0 if tail is None else turns.count(tail.all_lines())
            last = held if last is None else last
            before = last - held
            with self._guard:
                self._before[rel] = (stamp.inode, before)
        return last + 1, before

    def _rewrite(self, scope: Scope, turn_id: str, change: _Change) -> bool:
        rel = layout.messages(scope)
        with self.files.lock(rel):
            compaction.recover(self.files, scope)
            if self._rewrite_file(rel, turn_id, change):
                return True
            return any(self._rewrite_file(PurePosixPath(path), turn_id, change) for path in self.archives(scope))

    def _rewrite_file(self, rel: PurePosixPath, turn_id: str, change: _Change) -> bool:
        lines = load_lines(self.files.read(rel) or b"")
        turn = next((turn for turn in turns.group(lines) if turn.id == turn_id), None)
        if turn is None:
            return False
        new = change(turn)
        gone = {line.at for line in turn.lines}
        first = turn.lines[0].at
        insert = {first: b"" if new is None else turns.stored([new])}
        kept = (insert.get(line.at, b"") if line.at in gone else turns.healed(line) for line in lines)
        self.files.write(rel, b"".join(kept))
        return True
