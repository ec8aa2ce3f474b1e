"""Read one big JSON object piece by piece: arrays of its top level element by element, in bounded memory. Blocking.

The published plugin writes its backups as one line with three parallel arrays, so that a file of 100,000 memories
could otherwise only be read as a whole.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, cast

from amrita_plugin_memory.kernel.errors import Corrupt

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_BLOCK: Final = 1 << 16
_LARGEST: Final = 64 << 20  # characters of one element
_BLANK: Final = " \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """A top-level value (``value``) of the object, or one element of a top-level array, or the end of one."""

    key: str
    value: Json = None
    kind: str = "value"  # value | element | end


class _Text:
    """The characters of a file from a byte offset on, looked at and taken in pieces."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("strict").decode
        self._text = ""
        self._at = 0
        self._ended = False

    def more(self) -> bool:
        """Read another block; False at the end of the file."""
        if self._ended:
            return False
        block = self._file.read(_BLOCK)
        self._ended = not block
        self._text = self._text[self._at :] + self._decode(block, final=self._ended)
        self._at = 0
        return not self._ended

    def peek(self) -> str:
        """The next character that is not blank; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _BLANK:
                    return self._text[self._at]
                self._at += 1
            if not self.more():
                return ""

    def take(self, expected: str) -> str:
        """Take the next sign, which must be one of ``expected``."""
        sign = self.peek()
        if not sign or sign not in expected:
            raise ValueError(f"expected one of {expected}")
        self._at += 1
        return sign

    def value(self) -> Json:
        """Take one whole JSON value."""
        self.peek()
        decoder = json.JSONDecoder()
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self._at)
            except ValueError:
                if len(self._text) - self._at > _LARGEST or not self._grow():
                    raise
                continue
            if end < len(self._text) or self._ended or not self._grow():  # a number may go on in the next block
                self._at = end
                return cast("Json", value)

    def _grow(self) -> bool:
        """Read about as much again as there is, so that a long value is tried few times."""
        wanted = 2 * (len(self._text) - self._at)
        before = len(self._text) - self._at
        while len(self._text) - self._at < wanted + _BLOCK and self.more():
            pass
        return len(self._text) - self._at > before


def events(path: Path) -> Iterator[Event]:
    """What the object in ``path`` holds, in the file's order.

    Raises:
        Corrupt: not a JSON object, or it ends too early, or it is not UTF-8.
        OSError: the file cannot be read.

    """
    with path.open("rb") as file:
        if file.read(3) != _BOM:
            file.seek(0)
        try:
            yield from _events(_Text(file))
        except (ValueError, RecursionError) as e:
            raise Corrupt(f"备份文件 {path.name} 不是完整的 JSON，可能没有写完或被改动过") from e


def elements(path: Path, key: str) -> Iterator[Json]:
    """The elements of the top-level array ``key``; nothing when there is none.

    Raises:
        Corrupt: see ``events``.

    """
    for event in events(path):
        if event.key == key and event.kind == "element":
            yield event.value
        elif event.key == key:
            return


def _events(text: _Text) -> Iterator[Event]:
    text.take("{")
    if text.peek() == "}":
        return
    while True:
        key = text.value()
        if not isinstance(key, str):
            raise ValueError("a key that is no string")
        text.take(":")
        if text.peek() == "[":
            yield from _array(text, key)
        else:
            yield Event(key, text.value())
        if text.take(",}") == "}":
            break
    if text.peek():
        raise ValueError("something follows the object")


def _array(text: _Text, key: str) -> Iterator[Event]:
    text.take("[")
    if text.peek() == "]":
        text.take("]")
    else:
        while True:
            yield Event(key, text.value(), "element")
            if text.take(",]") == "]":
                break
    yield Event(key, None, "end")
