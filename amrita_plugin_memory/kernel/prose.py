"""JSON inside prose, as language models write it: fenced, introduced, explained, damaged. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

_MAX: Final = 400_000  # characters of an answer that are looked at
_TRIES: Final = 200  # places at which an object may begin
_LOOSE: Final = re.compile(r",(\s*[}\]])")
_CURLY: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\uff1a": ":", "\uff0c": ","})


def find_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a text, outermost ones, in order.

    Braces inside strings do not count. A comma before a closing bracket is forgiven; when no object can be read at all,
    the text is tried again with Chinese quotation marks, colons and commas in place of the ASCII ones.
    """
    found = list(_objects(text[:_MAX]))
    if not found and text.translate(_CURLY) != text:
        found = list(_objects(text[:_MAX].translate(_CURLY)))
    yield from found


def first_object(text: object) -> dict[str, Any] | None:
    """The biggest JSON object of a text or value; None when there is none."""
    if isinstance(text, dict):
        return cast("dict[str, Any]", text)
    if not isinstance(text, str):
        return None
    return max(find_objects(text), key=len, default=None)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder, at = json.JSONDecoder(strict=False), 0
    for _ in range(_TRIES):
        at = text.find("{", at)
        if at < 0:
            return
        value, end = _decode(decoder, text, at)
        if value is None:
            at += 1
        else:
            yield value
            at = end


def _decode(decoder: json.JSONDecoder, text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    try:
        value, end = decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        end = _matching(text, at)
        try:
            value = decoder.decode(_LOOSE.sub(r"\1", text[at:end])) if end else None
        except (ValueError, RecursionError):
            value = None
    return (cast("dict[str, Any]", value), end) if isinstance(value, dict) else (None, at)


def _matching(text: str, at: int) -> int:
    """Behind the brace that closes the one at ``at``; 0 when none does."""
    depth, quoted, place = 0, False, at
    while place < len(text):
        sign = text[place]
        if sign == "\\" and quoted:
            place += 1
        elif sign == '"':
            quoted = not quoted
        elif not quoted and sign in "{}":
            depth += 1 if sign == "{" else -1
            if depth == 0:
                return place + 1
        place += 1
    return 0
