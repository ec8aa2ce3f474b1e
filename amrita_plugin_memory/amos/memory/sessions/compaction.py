"""Moving the oldest turns of ``messages.jsonl`` to the archive, so that a kill at any step loses nothing.

The steps of a commit, all under the lock of ``messages.jsonl``:

1. the intent (``.compress.json``): which first bytes of the file are to go, the new summary, and the size of every
   archive file before it grows;
2. the turns at the end of their archive files;
3. the new summary, and the version of the prefix when it changed;
4. ``messages.jsonl`` with the rest only;
5. the intent goes.

Whoever next takes the lock and finds an intent finishes the work: when the file still begins with the bytes of the
intent, the archives are cut back to their sizes and steps 2 to 5 are done again; otherwise step 4 was done, and only
the intent is left over. Summary before messages, so that a reader in between sees a turn twice rather than not at all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import PurePosixPath
from typing import Any, Final

from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.ground.formats import Line, load_lines, load_object
from amrita_plugin_memory.amos.memory.versions import bump
from amrita_plugin_memory.kernel.scope import Scope

from . import turns
from .turns import Turn

INTENT: Final = ".compress.json"
DAMAGED: Final = "damaged.log"  # lines that hold no message, kept apart as they were found


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be compressed: the first ``size`` bytes of the file, whose digest is ``digest``, as turns."""

    head: tuple[Turn, ...]
    kept: int
    size: int
    digest: str
    old_summary: str


def plan(data: bytes, *, keep: int, old_summary: str) -> Plan:
    """Split a file's bytes so that the last ``keep`` turns stay.

    A line is where it is in the file, so the head is a prefix of the bytes; damaged lines between its turns go with it.
    """
    found = turns.group(load_lines(data))
    head, tail = turns.split(found, keep)
    size = tail[0].lines[0].at if tail else len(data)
    return Plan(tuple(head), len(tail), size, _digest(memoryview(data)[:size]), old_summary)


def commit(
    files: FileRoot, scope: Scope, plan: Plan, data: bytes, *, summary: str, zone: tzinfo, now: datetime
) -> list[str]:
    """Do the five steps; the archive files that grew.

    The caller holds the lock, and read ``data``, the whole file, under it and saw it begin as planned.
    """
    days = turns.by_day(plan.head, zone, now)
    intent = {
        "version": 1,
        "size": plan.size,
        "digest": plan.digest,
        "summary": summary,
        "changed": summary != plan.old_summary,
        "archives": [
            {"day": day, "size": _size(files, layout.archive(scope, day)), "turns": places}
            for day, places in days.items()
        ],
    }
    files.write_json(_intent(scope), intent)
    _carry_out(files, scope, intent, data)
    return [str(layout.archive(scope, day)) for day in days]


def begins_as_planned(data: bytes, size: int, digest: str) -> bool:
    """True when the first ``size`` bytes are the ones that were planned with."""
    return len(data) >= size and _digest(memoryview(data)[:size]) == digest


def recover(files: FileRoot, scope: Scope) -> bool:
    """Finish what a killed process began; True when there was something. The caller holds the lock."""
    if not is_pending(files, scope):
        return False
    intent = load_object(files.read(_intent(scope)) or b"")
    if intent is not None and intent.get("version") == 1:
        data = files.read(layout.messages(scope)) or b""
        if begins_as_planned(data, int(intent["size"]), str(intent["digest"])):
            _carry_out(files, scope, intent, data)
            return True
    files.delete(_intent(scope))
    return True


def is_pending(files: FileRoot, scope: Scope) -> bool:
    """True when a commit was begun and not finished (or is under way in another process)."""
    return files.exists(_intent(scope))


def _carry_out(files: FileRoot, scope: Scope, intent: dict[str, Any], data: bytes) -> None:
    """Steps 2 to 5; ``data`` is all of ``messages.jsonl``, which a big session should not be read again for."""
    size = int(intent["size"])
    lines = load_lines(data[:size])
    head = turns.group(lines)
    for archive in intent["archives"]:
        path = layout.archive(scope, str(archive["day"]))
        files.truncate(path, int(archive["size"]))
        files.append(path, turns.stored(head[int(place)] for place in archive["turns"]))
    _keep_damaged(files, scope, lines)
    files.write_text(layout.summary(scope), str(intent["summary"]))
    if intent["changed"]:
        bump(files, [scope])
    files.write(layout.messages(scope), _rest(data[size:]))
    files.delete(_intent(scope))


def _rest(data: bytes) -> bytes:
    return b"".join(turns.healed(line) for line in load_lines(data))


def _keep_damaged(files: FileRoot, scope: Scope, lines: list[Line]) -> None:
    bad = b"".join(line.raw + b"\n" for line in lines if line.record is None)
    path = layout.session_dir(scope) / DAMAGED
    if bad and bad not in (files.read(path) or b""):
        files.append(path, bad)


def _intent(scope: Scope) -> PurePosixPath:
    return layout.session_dir(scope) / INTENT


def _size(files: FileRoot, rel: PurePosixPath) -> int:
    stamp = files.stamp(rel)
    return 0 if stamp is None else stamp.size


def _digest(data: memoryview) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
