"""Bytes and records, both ways, forgiving in what is read and strict in what is written. Pure.

Text: a BOM goes, CRLF becomes LF, a foreign byte becomes U+FFFD. JSON lines: split at LF only, so that U+2028 inside a
text never ends a line; a torn line, a list, a bare string or a foreign byte costs at most that line. What we write
escapes the signs at which the reference implementation would split (U+0085, U+2028, U+2029).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from amrita_plugin_memory.kernel.text import well_formed

BOM: Final = b"\xef\xbb\xbf"
_SPLITTERS: Final = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_COMPACT: Final = json.JSONEncoder(ensure_ascii=False).encode
_ESCAPES: Final = str.maketrans(_SPLITTERS)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a JSONL file: its bytes without the line end, and its record, None when it is not a JSON object.

    ``at`` is where it begins in the bytes it was read from.
    """

    raw: bytes
    record: dict[str, Any] | None
    at: int = 0


def decode(data: bytes) -> str:
    """Text of a file: without BOM, LF line ends, foreign bytes replaced."""
    text = data.removeprefix(BOM).decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def encode(text: str) -> bytes:
    """Text as it is stored: UTF-8, lone surrogates replaced."""
    return well_formed(text).encode()


def dump_line(record: Mapping[str, Any]) -> bytes:
    """A record as one JSON line with its LF."""
    text = _COMPACT(record)
    if not text.isascii():
        text = well_formed(text).translate(_ESCAPES)
    return text.encode() + b"\n"


def dump_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Records as JSON lines."""
    return b"".join(map(dump_line, records))


def dump_json(value: object) -> bytes:
    """A value as a JSON file, indented as the reference implementation does."""
    return well_formed(json.dumps(value, ensure_ascii=False, indent=2)).encode()


def dump_map(entries: Mapping[str, Any]) -> bytes:
    """A big JSON object with one line for each key: as readable as the indented form and ten times as quick to make."""
    lines = (f"  {_COMPACT(key)}: {_COMPACT(value)}" for key, value in entries.items())
    return well_formed("{\n" + ",\n".join(lines) + "\n}").encode() if entries else b"{}"


def load_json(data: bytes) -> Any:
    """The value of a JSON file; None when it is not JSON."""
    try:
        return json.loads(data.removeprefix(BOM))
    except (ValueError, RecursionError):
        return None


def load_object(data: bytes) -> dict[str, Any] | None:
    """The object of a JSON file; None when it is none."""
    value = load_json(data)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def load_lines(data: bytes) -> list[Line]:
    """The non-empty lines of a JSONL file."""
    lines: list[Line] = []
    at = len(BOM) if data.startswith(BOM) else 0
    for raw in data[at:].split(b"\n"):
        if line := raw.rstrip(b"\r"):
            lines.append(Line(line, load_line(line), at))
        at += len(raw) + 1
    return lines


def load_records(data: bytes) -> list[dict[str, Any]]:
    """The objects of a JSONL file; lines that hold none are left out."""
    return [line.record for line in load_lines(data) if line.record is not None]


def load_line(raw: bytes) -> dict[str, Any] | None:
    """The object of one line; None for anything else. A foreign byte inside a text becomes U+FFFD."""
    try:
        value = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
