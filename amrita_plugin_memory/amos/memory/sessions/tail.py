"""The messages of a session in memory, kept in step with the file by reading only what was added.

`Tails` knows the last few sessions. What it hands out is a snapshot that later reads never change; nothing in it may be
changed by the caller.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from amrita_plugin_memory.amos.ground import FileRoot, Stamp
from amrita_plugin_memory.amos.ground.formats import Line, load_lines
from amrita_plugin_memory.amos.types import PromptMessage

from . import turns

KEPT_SESSIONS: Final = 64
_MARK: Final = 96  # bytes before the read position that must still be there for the rest to be trusted


@dataclass(slots=True)
class Tail:
    """State of one file: whole lines up to ``end``, and what stands behind them without a line end."""

    stamp: Stamp
    lines: list[Line] = field(default_factory=list[Line])
    messages: list[PromptMessage] = field(default_factory=list[PromptMessage])
    end: int = 0
    mark: bytes = b""
    torn: Line | None = None

    def prompt(self) -> list[PromptMessage]:
        """Every message of the file, in order; the list is the caller's own."""
        spoken = list(self.messages)
        if self.torn is not None and self.torn.record is not None:
            spoken.append(turns.prompt_message(self.torn.record))
        return spoken

    def all_lines(self) -> list[Line]:
        """Every line of the file, a torn one included."""
        return list(self.lines) if self.torn is None else [*self.lines, self.torn]


@dataclass(slots=True)
class Tails:
    """The last `KEPT_SESSIONS` sessions that were looked at; safe between threads."""

    files: FileRoot
    _known: OrderedDict[PurePosixPath, Tail] = field(default_factory=OrderedDict[PurePosixPath, Tail])
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def get(self, rel: PurePosixPath) -> Tail | None:
        """The file as it is now; None when it is not there."""
        with self._guard:
            stamp = self.files.stamp(rel)
            if stamp is None:
                self._known.pop(rel, None)
                return None
            known = self._known.pop(rel, None)
            if known is None or known.stamp != stamp:
                known = self._read(rel, stamp, known)
            self._known[rel] = known
            while len(self._known) > KEPT_SESSIONS:
                self._known.popitem(last=False)
            return known

    def _read(self, rel: PurePosixPath, stamp: Stamp, known: Tail | None) -> Tail:
        if known is not None and known.stamp.inode == stamp.inode and stamp.size >= known.end > 0:
            start = known.end - len(known.mark)
            data = self.files.read(rel, start=start) or b""
            if data.startswith(known.mark):
                return _extended(known, stamp, data[len(known.mark) :], known.end)
        return _extended(Tail(stamp), stamp, self.files.read(rel) or b"", 0)


def _extended(known: Tail, stamp: Stamp, data: bytes, start: int) -> Tail:
    """A new state with ``data``, which begins at ``start``, read behind the known lines."""
    whole, torn = data[: data.rfind(b"\n") + 1], data[data.rfind(b"\n") + 1 :]
    lines = load_lines(whole)
    messages = [turns.prompt_message(line.record) for line in lines if line.record is not None]
    return Tail(
        stamp=stamp,
        lines=[*known.lines, *lines],
        messages=[*known.messages, *messages],
        end=start + len(whole),
        mark=(known.mark + whole)[-_MARK:],
        torn=next(iter(load_lines(torn)), None),
    )
