"""What a collection is rebuilt from: itself, or a backup. And which text of a row its vector is made of."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from amrita_plugin_memory.vectordb.ports import Collection, Row

TextOf: TypeAlias = Callable[[Row], str]


class Source(Protocol):
    """Rows to build a collection from. A row that carries a vector is taken with it; the others are embedded."""

    @property
    def job(self) -> str:
        """Names the work, so that only the same work is resumed."""
        ...

    async def count(self) -> int:
        """About how many rows there are."""
        ...

    def pages(self, size: int) -> AsyncIterator[list[Row]]:
        """All rows in order, at most ``size`` at a time."""
        ...

    async def get(self, ids: Sequence[str]) -> list[Row]:
        """The rows among ``ids``."""
        ...


class Itself:
    """The collection as it stands: the source of a reindex."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    @property
    def job(self) -> str:
        """Any interrupted reindex may be taken up again, since rows are compared one by one."""
        return "reindex"

    async def count(self) -> int:
        """Rows in the collection."""
        return await self._collection.count()

    def pages(self, size: int) -> AsyncIterator[list[Row]]:
        """Rows without their old vectors."""
        return self._collection.pages(size=size)

    async def get(self, ids: Sequence[str]) -> list[Row]:
        """Rows without their old vectors."""
        return await self._collection.get(ids)


def document_of(row: Row) -> str:
    """The text of a fact's vector."""
    return row.document or ""


def summaries(index: Path) -> TextOf:
    """The text of a knowledge entry's vector: title and summary, which its document begins with.

    Rows of the published plugin hold no document; for them it is the summary in ``knowledge_index.json``. Blocking. An
    index that is missing or unreadable gives blank texts, whose rows get a vector of zeros.
    """
    try:
        entries: object = json.loads(index.read_text("utf-8-sig"))
    except (OSError, ValueError):
        entries = []
    known: dict[str, str] = {}
    for entry in cast("list[object]", entries) if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            fields = cast("dict[str, object]", entry)
            known[str(fields.get("kid"))] = str(fields.get("summary") or fields.get("title") or "")

    def text(row: Row) -> str:
        if row.document:
            return "\n".join(row.document.split("\n", 2)[:2])
        return known.get(str(row.metadata.get("kid", row.id)), "")

    return text
