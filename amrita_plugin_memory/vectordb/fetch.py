"""Reading from one Chroma collection under every bound. Blocking; meant for a worker thread.

Chroma answers ``too many SQL variables`` above some 32,700 rows with metadata, hence pages. It keeps insertion order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .ports import PAGE, PARTITION_KEY, Partition, Row
from .rows import batches, in_order, partition_of, rows_from

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection as ChromaHandle

FETCH = 1_000  # whole rows a request: 5,000 at once are no faster and take 200 MB on the way, measured at 10 keys a row
_TRIES = 5


def by_ids(handle: ChromaHandle, ids: Sequence[str], *, vectors: bool) -> list[Row]:
    """The stored rows among at most FETCH ids, in Chroma's order."""
    return rows_from(handle.get(ids=list(ids), include=_parts(vectors=vectors))) if ids else []


def all_ids(handle: ChromaHandle, where: dict[str, Any] | None = None) -> list[str]:
    """Every id in insertion order.

    Pages overlap by one row: when a deletion elsewhere moved the rows between two pages, the overlap does not fit,
    and the walk begins again; the last try takes what it gets.
    """
    ids: list[str] = []
    for _ in range(_TRIES):
        ids, whole = _walk(handle, where)
        if whole:
            break
    return list(dict.fromkeys(ids))


def _walk(handle: ChromaHandle, where: dict[str, Any] | None) -> tuple[list[str], bool]:
    ids: list[str] = []
    whole = True
    while True:
        start = max(len(ids) - 1, 0)
        page = handle.get(where=where, include=[], limit=PAGE, offset=start)["ids"]
        if ids and page[:1] != ids[-1:]:
            whole = False
        ids += page[1:] if ids and page[:1] == ids[-1:] else page
        if len(page) < PAGE:
            return ids, whole


def where(handle: ChromaHandle, key: str, *, vectors: bool) -> list[Row]:
    """All rows of a partition in insertion order: one request where they fit a page, else its ids and then its rows."""
    rows = rows_from(handle.get(where={PARTITION_KEY: key}, include=_parts(vectors=vectors), limit=FETCH))
    if len(rows) < FETCH:
        return rows
    ids = all_ids(handle, {PARTITION_KEY: key})
    return in_order([row for batch in batches(ids, FETCH) for row in by_ids(handle, batch, vectors=vectors)], ids)


def partition(handle: ChromaHandle, key: str, held: Partition | None = None) -> Partition:
    """A partition; with ``held``, the one in memory, only vectors of rows that differ from it are fetched.

    The check reads documents and metadata of the whole partition and so sees additions, deletions and changes by
    anybody, at the price of one request that costs Chroma its scan (28-45 ms at 100k rows). A program that replaces a
    vector and touches neither document nor metadata goes unseen; none is known.
    """
    source = str(handle.id)
    if held is None or held.source != source:
        return partition_of(key, where(handle, key, vectors=True), source=source)
    rows = where(handle, key, vectors=False)
    if tuple(rows) == held.rows:
        return held
    known = {row.id: (row, held.matrix[place]) for place, row in enumerate(held.rows)}
    fresh = [row.id for row in rows if row.id not in known or known[row.id][0] != row]
    fetched = {row.id: row for batch in batches(fresh, FETCH) for row in by_ids(handle, batch, vectors=True)}
    whole = [
        fetched[row.id] if row.id in fetched else Row(row.id, row.document, row.metadata, known[row.id][1])
        for row in rows
        if row.id in fetched or row.id not in fresh
    ]
    return partition_of(key, whole, source=source)


def _parts(*, vectors: bool) -> Any:
    return ["documents", "metadatas", "embeddings"] if vectors else ["documents", "metadatas"]
