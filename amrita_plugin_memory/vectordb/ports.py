"""The port of this room: durable rows with vectors, and one partition (one user's rows) held in memory.

Nothing outside this room knows Chroma. Vectors come in ready-made; the store never embeds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Scalar: TypeAlias = str | int | float | bool
Matrix: TypeAlias = "NDArray[np.float32]"

PARTITION_KEY = "user_id"  # metadata key of the partition, as the published plugin wrote it
VECTORS_MISSING = "embed_pending"  # in a collection's metadata: some rows carry zeros and are to be embedded
PAGE = 5_000  # rows a page; stays under every bound of Chroma and SQLite


@dataclass(frozen=True, slots=True)
class Row:
    """One stored thing. ``vector`` has shape (dimension,), float32; None where it was not asked for."""

    id: str
    document: str | None
    metadata: Mapping[str, Scalar]
    vector: Matrix | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """All rows of one partition key in the order they were stored, and their vectors, shape (len(rows), dimension).

    ``matrix`` is read-only and row i of it belongs to ``rows[i]`` (whose own ``vector`` is None). ``source`` is the
    store's own id of the collection it was read from: it changes when the collection was rebuilt and swapped, so that
    a fingerprint checked for one source is never applied to the vectors of another.
    """

    key: str
    rows: tuple[Row, ...]
    matrix: Matrix
    source: str = ""


class Collection(Protocol):
    """One named collection. Every call is off the event loop, bounded in time, and paged under every bound.

    A handle follows its name: after a rename or a swap it serves whatever bears that name then.
    More than one batch of rows (500) is stored batch by batch; an error leaves the batches before it stored.
    """

    @property
    def name(self) -> str:
        """Name in the store."""
        ...

    async def metadata(self) -> dict[str, Scalar]:
        """The collection's own metadata (fingerprint, key version), read from the store."""
        ...

    async def annotate(self, changes: Mapping[str, Scalar | None]) -> None:
        """Merge into the collection's metadata; None removes a key. Chroma would replace the whole dict."""
        ...

    async def count(self) -> int:
        """Rows in the whole collection."""
        ...

    async def add(self, rows: Sequence[Row]) -> None:
        """Store new rows with vectors; acknowledged means durable.

        Raises:
            Duplicate: an id is stored already (Chroma would ignore the row in silence).
            SpaceMismatch: the dimension is not the collection's.
            StoreUnavailable: the store does not answer in time.

        """
        ...

    async def update(self, rows: Sequence[Row]) -> None:
        """Change the document where given, the metadata (whole) and, where given, the vector of stored rows.

        Raises:
            NotFound: an id is not stored (Chroma would ignore it in silence).

        """
        ...

    async def delete(self, ids: Sequence[str]) -> int:
        """Remove rows; the number that really was there."""
        ...

    async def get(self, ids: Sequence[str], *, vectors: bool = False) -> list[Row]:
        """The stored rows among ``ids``, in that order."""
        ...

    async def partition(self, key: str) -> Partition:
        """All rows whose ``user_id`` equals ``key``; from memory when hot, revalidated when others may have written."""
        ...

    async def size(self, key: str) -> int:
        """How many rows a partition has."""
        ...

    def pages(self, *, size: int = PAGE, vectors: bool = False) -> AsyncIterator[list[Row]]:
        """All rows, page by page, in bounded memory."""
        ...


class VectorStore(Protocol):
    """One store (a local directory or a server): one client a process."""

    async def open(self, name: str, *, create: bool = True) -> Collection | None:
        """The collection, made when missing and ``create``; else None."""
        ...

    async def names(self) -> list[str]:
        """Names of all collections."""
        ...

    async def drop(self, name: str) -> None:
        """Remove a collection and what it left on disk; no error when there is none."""
        ...

    async def rename(self, old: str, new: str) -> None:
        """Give a collection another name; ``new`` must be free."""
        ...

    async def swap(self, name: str, replacement: str, *, aside: str) -> None:
        """Rename ``name`` to ``aside`` and ``replacement`` to ``name``, with no write of this process in between.

        A kill between the two leaves all rows under ``aside`` and ``replacement``; ``aside`` must be free.
        """
        ...

    async def aclose(self) -> None:
        """Close the client and release the directory lock."""
        ...
