"""Sections of a Markdown text: add to one, take lines out, replace one. Pure.

A section is a heading line and everything up to the next heading of the same or a higher level, so that deeper headings
belong to it. Lines inside a code fence are never headings. A heading is compared whole: ``## A`` is not ``## AB``.
"""

from __future__ import annotations

import re
from typing import Final

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


def heading_line(section: str) -> str:
    """``## section``, or the section as it stands when it is a heading already."""
    section = section.strip()
    return section if section.startswith("#") else f"## {section}"


def add_to_section(text: str, section: str, content: str) -> str:
    """``content`` directly below its heading, the newest first; a heading that is missing is added at the end."""
    lines, heading = text.split("\n") if text.strip() else [], heading_line(section)
    for at in _headings(lines):
        if lines[at].strip() == heading:
            lines.insert(at + 1, content)
            return "\n".join(lines)
    return "\n".join([*_without_blank_end(lines), *([""] if lines else []), heading, content])


def remove_facts(text: str, keyword: str) -> tuple[str, int]:
    """The text without the lines that contain ``keyword``, headings apart, and how many went."""
    lines = text.split("\n")
    headings = set(_headings(lines))
    kept = [line for at, line in enumerate(lines) if at in headings or keyword not in line]
    return "\n".join(kept), len(lines) - len(kept)


def replace_section(text: str, section: str, content: str) -> str | None:
    """The text with the body of one section replaced, nested sections included; None when there is no such heading.

    ``section`` is a heading (``## A``, its level counts) or a title alone (the first heading so titled).
    """
    lines = text.split("\n")
    headings = _headings(lines)
    start = next((at for at in headings if _is_meant(lines[at], section)), None)
    if start is None:
        return None
    level = _level(lines[start])
    end = next((at for at in headings if at > start and _level(lines[at]) <= level), len(lines))
    body = content.strip("\n").split("\n")
    if body and body[0].strip() == lines[start].strip():
        body = body[1:]
    after = ["", *lines[end:]] if end < len(lines) else lines[len(lines) - 1 :] if text.endswith("\n") else []
    return "\n".join([*lines[: start + 1], *body, *after])


def value_of(text: str, key: str) -> str:
    """The value of the first ``key: value`` line (any case, ASCII or full-width colon, list sign allowed), or ""."""
    wanted = key.strip().casefold()
    for line in text.split("\n"):
        name, colon, value = line.replace("：", ":", 1).partition(":")
        if colon and name.strip().lstrip("-*+ ").casefold() == wanted:
            return value.strip()
    return ""


def _headings(lines: list[str]) -> list[int]:
    found: list[int] = []
    fence = ""
    for at, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence and _HEADING.match(line.strip()):
            found.append(at)
    return found


def _is_meant(line: str, section: str) -> bool:
    match, wanted = _HEADING.match(line.strip()), section.strip()
    return match is not None and wanted in (line.strip(), match[2].strip())


def _level(line: str) -> int:
    return len(line.strip()) - len(line.strip().lstrip("#"))


def _without_blank_end(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]
