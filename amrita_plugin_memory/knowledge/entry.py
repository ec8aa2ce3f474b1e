"""A knowledge entry as text, and windows of its lines. Pure.

The file format is the published plugin's: ``# title``, the summary, a line ``---``, the body. A title is one line and a
summary never holds a bare ``---`` line, so that what was written reads back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.text import clean, is_blank, one_line

MAX_TITLE: Final = 100
MAX_SUMMARY: Final = 500
_RULE: Final = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. ``body`` keeps its lines exactly; ``kid`` is its eight-digit id."""

    kid: str
    title: str
    summary: str
    body: str


@dataclass(frozen=True, slots=True)
class Window:
    """Lines ``[start, end)`` of a text that has ``total``; ``start`` counts from 0."""

    lines: tuple[str, ...]
    start: int
    end: int
    total: int


def lines_of(text: str) -> list[str]:
    """The lines of a text; an empty text has none."""
    return text.split("\n") if text else []


def window(text: str, start: int | None, end: int | None) -> Window:
    """The lines from ``start`` to before ``end``, both clamped to the text."""
    lines = lines_of(text)
    first = min(max(start or 0, 0), len(lines))
    last = len(lines) if end is None else min(max(end, first), len(lines))
    return Window(tuple(lines[first:last]), first, last, len(lines))


def spliced(text: str, new: Sequence[str], start: int | None, end: int | None) -> str:
    """``text`` with lines ``[start, end)`` replaced by ``new``; without both bounds ``new`` is appended."""
    lines = lines_of(text)
    if start is None and end is None:
        return "\n".join([*lines, *new])
    first = min(max(start or 0, 0), len(lines))
    last = len(lines) if end is None else min(max(end, first), len(lines))
    return "\n".join([*lines[:first], *new, *lines[last:]])


def checked(title: str, summary: str, body: str, *, max_body: int) -> tuple[str, str, str]:
    """The three parts as they will be stored.

    Raises:
        InvalidInput: a blank title or summary, or a part that is too long.

    """
    if is_blank(title) or is_blank(summary):
        raise InvalidInput("知识条目的标题和摘要都不能为空")
    name, about, text = one_line(clean(title)).lstrip("# "), _RULE.sub("—", clean(summary)).strip(), clean(body)
    for what, part, bound in (("标题", name, MAX_TITLE), ("摘要", about, MAX_SUMMARY), ("正文", text, max_body)):
        if len(part) > bound:
            raise InvalidInput(f"知识条目的{what}有 {len(part)} 字，超过上限 {bound} 字")
    return name, about, text.rstrip("\n")


def to_text(entry: Entry) -> str:
    """The file of an entry."""
    return f"# {entry.title}\n{entry.summary}\n---\n{entry.body}\n"


def from_text(kid: str, text: str) -> Entry:
    """Read a file; one without a rule is all summary, one without a heading is titled by its first line."""
    head, _, rest = text.lstrip("\ufeff").replace("\r\n", "\n").partition("\n")
    rule = _RULE.search(rest)
    summary, body = (rest, "") if rule is None else (rest[: rule.start()], rest[rule.end() :].removeprefix("\n"))
    return Entry(kid, head.lstrip("#").strip(), summary.strip(), body.rstrip("\n"))
