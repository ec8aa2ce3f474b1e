"""What of one partition is worked out once and kept while it does not change: terms, popularity, days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Final

import numpy as np
from numpy.typing import NDArray

from amrita_plugin_memory.kernel.clock import parse_iso
from amrita_plugin_memory.vectordb.ports import Matrix, Partition, Row

from .dates import Span, spans
from .dates.span import DAY
from .near import essence
from .rank import Floats, popularity, spread
from .words import Lexicon

STORED_AT: Final = ("created_at", "updated_at")  # names of the store's metadata


def words_of(row: Row) -> str:
    """The text of a row that words are matched with: what it says and how it is tagged."""
    return f"{row.document or ''} {row.metadata.get('tags', '')}"


@dataclass(frozen=True, slots=True)
class _Meaning:
    inverse: Floats  # of the norms: rows of the published plugin need not be unit vectors
    known: NDArray[np.bool_]
    popular: Floats
    spread: float

    @classmethod
    def of(cls, matrix: Matrix) -> _Meaning:
        norms = np.linalg.norm(matrix, axis=1)
        known = norms > 0
        inverse = np.asarray(1.0 / np.where(known, norms, 1.0), dtype=np.float32)
        unit = (matrix * inverse[:, None])[known]
        popular = np.zeros(len(matrix), dtype=np.float32)
        popular[known] = popularity(unit)
        return cls(inverse, known, popular, spread(unit))


class Ready:
    """One partition, prepared for questions. Building it counts terms; the rest is worked out when first asked for."""

    def __init__(self, partition: Partition) -> None:
        self.rows = partition.rows
        self.lexicon = Lexicon.of([words_of(row) for row in partition.rows])
        self._matrix = partition.matrix
        self._meaning: _Meaning | None = None
        self._mentions: dict[int, list[Span]] = {}
        self._stored: dict[int, list[datetime]] = {}
        self._essences: dict[int, str] = {}
        self._zone: tzinfo | None = None

    @property
    def dimension(self) -> int:
        """Of the stored vectors; 0 where there are none."""
        return self._matrix.shape[1]

    def serves(self, partition: Partition) -> bool:
        """Whether this was prepared from the same rows and vectors."""
        same = self.rows is partition.rows or self.rows == partition.rows
        return same and (self._matrix is partition.matrix or np.array_equal(self._matrix, partition.matrix))

    def prepare_meaning(self) -> None:
        """Work out norms, popularity and spread; a second call costs nothing."""
        if self._meaning is None:
            self._meaning = _Meaning.of(self._matrix)

    def cosines(self, vector: Matrix) -> tuple[Floats, Floats, float]:
        """Cosines with ``vector`` and popularity, both of shape (n,), and the spread of the stored vectors.

        A row whose vector lacks (all zeros) counts as an ordinary one, so that words decide about it.
        """
        self.prepare_meaning()
        assert self._meaning is not None
        meaning = self._meaning
        found = np.asarray(self._matrix @ vector * meaning.inverse, dtype=np.float32)
        if not meaning.known.all():
            found[~meaning.known] = np.median(found[meaning.known]) if meaning.known.any() else 0.0
        return found, meaning.popular, meaning.spread

    def stored_in(self, i: int, wanted: Sequence[Span], zone: tzinfo | None) -> bool:
        """Whether row ``i`` was stored or changed in those days, or on the day after (things are told next day)."""
        days = {moment.astimezone(zone).date() for moment in self._moments(i)}
        return any(span.holds(day) or span.holds(day - DAY) for span in wanted for day in days)

    def mentions(self, i: int, wanted: Sequence[Span], now: datetime) -> bool:
        """Whether the text of row ``i``, said when it was stored, speaks of one of those days."""
        if self._zone != now.tzinfo:
            self._zone, self._mentions = now.tzinfo, {}
        told = self._mentions.get(i)
        if told is None:
            moment = min(self._moments(i), default=now).astimezone(now.tzinfo)
            told = self._mentions[i] = spans(self.rows[i].document or "", moment)
        return any(span.meets(other) and _as_narrow(other, span) for span in wanted for other in told)

    def age(self, i: int, today: date) -> int | None:
        """Days since row ``i`` was last changed, at least 0; None when unknown."""
        last = max(self._moments(i), default=None)
        return None if last is None else max((today - last.date()).days, 0)

    def essence(self, i: int) -> str:
        """What row ``i`` says, as near-identical rows say it too."""
        if i not in self._essences:
            self._essences[i] = essence(self.rows[i].document or "")
        return self._essences[i]

    def _moments(self, i: int) -> list[datetime]:
        if i not in self._stored:
            meta = self.rows[i].metadata
            found = (parse_iso(str(meta.get(name) or "")) for name in STORED_AT)
            self._stored[i] = [moment for moment in found if moment]
        return self._stored[i]


def _as_narrow(told: Span, wanted: Span) -> bool:
    # "In 2023" in a text is no answer to a question about one day of it.
    return (told.end - told.start) <= max((wanted.end - wanted.start) * 2, DAY * 7)
