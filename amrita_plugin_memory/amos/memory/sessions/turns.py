"""Turns of a session as lines of ``messages.jsonl``. Pure.

A turn is what a user said and everything up to the next time a user speaks. Our lines carry two keys that the reference
implementation keeps and ignores: ``id``, the same for all lines of a turn, and ``turn``, a number that grows by one,
which is how the length of a session is known from its first and last line. Turns of the reference implementation have
neither; their id is made from their bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Final

from amrita_plugin_memory.amos.ground.formats import Line, dump_line
from amrita_plugin_memory.amos.types import ROLES, PromptMessage
from amrita_plugin_memory.kernel.clock import parse_iso

_NUMBER: Final = re.compile(rb'"turn": ([0-9]{1,15})\}\r?\n\Z')
_SPLITTERS: Final = ("\x85", "\u2028", "\u2029")
LABELS: Final = {"user": "用户", "assistant": "助手", "system": "系统", "tool": "工具"}


@dataclass(frozen=True, slots=True)
class Turn:
    """Lines of one turn, in order; every line holds a record."""

    id: str
    lines: tuple[Line, ...]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The messages, each with the turn's id."""
        return [{**(line.record or {}), "id": self.id} for line in self.lines]

    @property
    def moment(self) -> datetime | None:
        """When it began, as far as its lines tell."""
        moments = (parse_iso(str((line.record or {}).get("ts", ""))) for line in self.lines)
        return next((moment for moment in moments if moment is not None), None)


def new_lines(user: str, assistant: str, *, ts: str, id: str, number: int) -> bytes:
    """Both lines of a new turn. ``turn`` stands last, where `last_number` finds it without reading the text."""
    said = (("user", user), ("assistant", assistant))
    return b"".join(
        dump_line({"role": role, "content": content, "ts": ts, "id": id, "turn": number}) for role, content in said
    )


def last_number(end: bytes) -> int | None:
    """The ``turn`` of the last line, from the last bytes of a file; None when another program wrote that line."""
    match = _NUMBER.search(end)
    return int(match[1]) if match else None


def group(lines: Iterable[Line]) -> list[Turn]:
    """Lines as turns; lines without a record are left out."""
    groups: list[list[Line]] = []
    for line in lines:
        if line.record is None:
            continue
        if groups and not _begins(line.record, groups[-1][-1].record or {}):
            groups[-1].append(line)
        else:
            groups.append([line])
    return [Turn(_id(members), tuple(members)) for members in groups]


def count(lines: Iterable[Line]) -> int:
    """How many turns the lines hold."""
    total, before = 0, None
    for line in lines:
        if line.record is not None:
            total += before is None or _begins(line.record, before)
            before = line.record
    return total


def split(turns: Sequence[Turn], keep: int) -> tuple[list[Turn], list[Turn]]:
    """The turns to compress and the last ``keep`` that stay."""
    at = max(len(turns) - max(keep, 0), 0)
    return list(turns[:at]), list(turns[at:])


def by_day(turns: Sequence[Turn], zone: tzinfo, today: datetime) -> dict[str, list[int]]:
    """Places of turns by the day (YYYYMMDD in ``zone``) they began; those without a time join the batch's earliest."""
    moments = [turn.moment for turn in turns]
    fallback = min((moment for moment in moments if moment is not None), default=today)
    days: dict[str, list[int]] = {}
    for place, moment in enumerate(moments):
        days.setdefault((moment or fallback).astimezone(zone).strftime("%Y%m%d"), []).append(place)
    return days


def stored(turns: Iterable[Turn]) -> bytes:
    """Turns as lines, as they were written; a line another reader would stumble over is written anew."""
    return b"".join(map(healed, (line for turn in turns for line in turn.lines)))


def healed(line: Line) -> bytes:
    """One line with its LF, free of foreign bytes and of signs that split lines elsewhere."""
    try:
        text = line.raw.decode()
    except UnicodeDecodeError:
        text = _SPLITTERS[0]
    if line.record is not None and any(sign in text for sign in _SPLITTERS):
        return dump_line(line.record)
    return line.raw + b"\n"


def edited(turn: Turn, user: str | None, assistant: str | None) -> Turn:
    """The turn with the text of its user line, its last assistant line, or both replaced."""
    new = {"user": user, "assistant": assistant}
    lines = list(turn.lines)
    for role, text in new.items():
        at = next((i for i in reversed(range(len(lines))) if (lines[i].record or {}).get("role") == role), None)
        if text is not None and at is not None:
            record = {**(lines[at].record or {}), "content": text}
            lines[at] = Line(dump_line(record)[:-1], record)
    return Turn(turn.id, tuple(lines))


def prompt_message(record: Mapping[str, Any]) -> PromptMessage:
    """A stored message as part of a prompt; an unknown role counts as user, as in the reference implementation."""
    role, content, call = record.get("role"), record.get("content"), record.get("tool_call_id")
    if not isinstance(content, str):
        content = "" if content is None else json.dumps(content, ensure_ascii=False)
    role = role if role in ROLES else "user"
    if isinstance(call, str) and call:
        return PromptMessage(role=role, content=content, tool_call_id=call)
    return PromptMessage(role=role, content=content)


def dialogue(turns: Iterable[Turn]) -> str:
    """Turns as text for a summariser, one labelled line a message."""
    said = (prompt_message(record) for turn in turns for record in turn.records)
    return "\n".join(f"{LABELS[message.role]}：{message.content}" for message in said)


def _begins(record: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    if "id" in record and "id" in before:
        return record["id"] != before["id"]
    return record.get("role") not in ("assistant", "tool") and not (
        record.get("role") == "system" and before.get("role") == "user"
    )


def _id(lines: Sequence[Line]) -> str:
    given = (lines[0].record or {}).get("id")
    if isinstance(given, str) and given:
        return given
    return hashlib.blake2b(b"\n".join(line.raw for line in lines), digest_size=8).hexdigest()
