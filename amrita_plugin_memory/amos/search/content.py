"""What of a file's bytes is indexed. Pure: values in, values out."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, cast

from amrita_plugin_memory.amos.ground import formats

from .store import MARK, Content, Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_FILE: Final = 4 * 1024 * 1024  # bytes; what follows in a longer note is not searched
MAX_PIECE: Final = 8_000  # characters of a note
MAX_MESSAGE: Final = 16_000  # characters of one message
HEAD: Final = 512  # bytes
DEPRECATED: Final = f"{MARK}deprecated"


def head_of(data: bytes) -> bytes:
    """What tells whether a file still begins as it did."""
    return hashlib.sha256(data[:HEAD]).digest()[:16]


def note(data: bytes, tags: Sequence[str] = ()) -> Content:
    """A Markdown file."""
    text = formats.decode(data[:MAX_FILE])
    return Content(tuple(Piece(part) for part in _parts(text)), tags=tuple(tags))


def asset(data: bytes, metadata_file: bytes) -> Content:
    """The definition of an asset with the description and tags of its metadata."""
    metadata = formats.load_object(metadata_file) or {}
    about = metadata.get("description")
    text = "\n".join(filter(None, (formats.decode(data[:MAX_FILE]), about if isinstance(about, str) else "")))
    tags = cast("object", metadata.get("tags"))
    words = tuple(str(tag) for tag in cast("list[object]", tags)) if isinstance(tags, list) else ()
    return Content(
        tuple(Piece(part) for part in _parts(text)),
        tags=words,
        mark=DEPRECATED if metadata.get("status") in ("deprecated", "draft") else "",
    )


def talk(data: bytes, *, start: int, head: bytes) -> Content:
    """Lines of a JSONL file from byte ``start`` on, one piece for each exchange.

    A last line without its line end is taken when it is whole; a torn one waits for its rest.
    """
    end = len(data) if formats.load_line(data[data.rfind(b"\n") + 1 :]) is not None else data.rfind(b"\n") + 1
    records = formats.load_records(data[:end] if start else data[:end].removeprefix(formats.BOM))
    return Content(tuple(_exchanges(records)), done=start + end, head=head)


def _parts(text: str) -> Iterator[str]:
    while len(text) > MAX_PIECE:
        cut = text.rfind("\n", MAX_PIECE // 2, MAX_PIECE) + 1 or MAX_PIECE
        yield text[:cut]
        text = text[cut:]
    yield text


def _exchanges(records: Iterable[dict[str, Any]]) -> Iterator[Piece]:
    held: list[dict[str, Any]] = []
    for record in records:
        if not isinstance(record.get("content"), str):
            continue
        if held and record.get("role") != "assistant":
            yield _exchange(held)
            held = []
        held.append(record)
    if held:
        yield _exchange(held)


def _exchange(records: Sequence[dict[str, Any]]) -> Piece:
    said = [(str(record.get("role", "user")), str(record["content"])[:MAX_MESSAGE]) for record in records]
    ts = records[0].get("ts")
    return Piece(
        "\n".join(f"{role}: {content}" for role, content in said),
        ts if isinstance(ts, str) else None,
        "\n".join(content for _, content in said),
    )
