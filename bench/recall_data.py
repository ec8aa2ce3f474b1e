"""Development data and its encodings for ``recall.py``; encodings are kept in a temporary folder, not here."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from amrita_plugin_memory.embedding import Embedder, Matrix, Purpose, VectorSpace
from amrita_plugin_memory.vectordb.ports import Partition, Row

CACHE_ENV: Final = "AMRITA_BENCH_CACHE"
_SLICE: Final = 64
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a conversation; ``evidence`` empty or ``category`` adversarial: nobody has the answer."""

    conversation: str
    text: str
    category: str
    evidence: frozenset[str]

    @property
    def answerable(self) -> bool:
        """Whether the corpus holds the answer."""
        return bool(self.evidence) and self.category != "adversarial"


@dataclass(frozen=True, slots=True)
class DataSet:
    """A folder of ``corpus.jsonl`` and ``questions.jsonl``: rows a conversation, and questions."""

    name: str
    rows: dict[str, tuple[Row, ...]]
    questions: tuple[Question, ...]

    @property
    def texts(self) -> list[str]:
        """All documents, conversation by conversation."""
        return [row.document or "" for rows in self.rows.values() for row in rows]


def read_sets(folder: Path) -> list[DataSet]:
    """Every data set below ``folder``; the folder itself may be one."""
    found = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    return [_read(path) for path in found if (path / "corpus.jsonl").is_file()]


def _read(folder: Path) -> DataSet:
    rows: dict[str, list[Row]] = {}
    for line in _lines(folder / "corpus.jsonl"):
        said = f"{line['speaker']}: {line['text']}" if line["speaker"] else line["text"]
        moment = _moment(line["time"])
        marks = {"created_at": moment.isoformat()} if moment else {}
        rows.setdefault(line["conv"], []).append(Row(line["id"], said, marks))
    questions = (
        Question(line["conv"], line["question"], line["category"], frozenset(line["evidence"]))
        for line in _lines(folder / "questions.jsonl")
    )
    return DataSet(folder.name, {conv: tuple(said) for conv, said in rows.items()}, tuple(questions))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        return None


@dataclass(slots=True)
class Encoded:
    """An embedder that knows every text of the data already; ``scale_name`` may hide which model it is."""

    made_by: VectorSpace
    known: dict[tuple[str, str], Matrix] = field(default_factory=dict[tuple[str, str], Matrix])

    async def embed(self, texts: Sequence[str], *, purpose: Purpose, deadline: float | None = None) -> Matrix:
        """The rows that were computed before."""
        return np.stack([self.known[purpose, text] for text in texts])

    async def space(self) -> VectorSpace:
        """The space of the model that computed them."""
        return self.made_by

    async def aclose(self) -> None:
        """Nothing to close."""


async def encode(embedder: Embedder, sets: Sequence[DataSet]) -> Encoded:
    """Encode documents and questions of ``sets`` once; the next run reads them from the cache folder."""
    encoded = Encoded(await embedder.space())
    for one in sets:
        wanted: tuple[tuple[Purpose, list[str]], ...] = (
            ("passage", one.texts),
            ("query", [question.text for question in one.questions]),
        )
        for purpose, texts in wanted:
            matrix = await _matrix(embedder, encoded.made_by, purpose, texts)
            encoded.known.update(zip(((purpose, text) for text in texts), matrix, strict=True))
    return encoded


async def _matrix(embedder: Embedder, space: VectorSpace, purpose: Purpose, texts: list[str]) -> Matrix:
    mark = json.dumps([space.package, space.resolved_model, space.prefix_rule, purpose, texts]).encode()
    path = cache_folder() / f"{hashlib.sha256(mark).hexdigest()}.npy"
    if path.is_file():
        return np.load(path)
    parts: list[Matrix] = []
    for start in range(0, len(texts), _SLICE):
        print(f"\rencoding {space.package} {purpose} {start}/{len(texts)} ", end="", file=sys.stderr, flush=True)
        parts.append(await embedder.embed(texts[start : start + _SLICE], purpose=purpose, deadline=_HOUR))
    print(file=sys.stderr)
    matrix = np.concatenate(parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, matrix)
    return matrix


def cache_folder() -> Path:
    """Where encodings are kept: $AMRITA_BENCH_CACHE, else a folder for temporary files."""
    return Path(os.environ.get(CACHE_ENV) or Path(tempfile.gettempdir()) / "amrita-recall-bench")


def partition_of(encoded: Encoded | None, one: DataSet, conversation: str) -> Partition:
    """One conversation as the store would hand it out."""
    rows = one.rows[conversation]
    if encoded is None:
        return Partition(conversation, rows, np.zeros((len(rows), 0), np.float32))
    return Partition(conversation, rows, np.stack([encoded.known["passage", row.document or ""] for row in rows]))
