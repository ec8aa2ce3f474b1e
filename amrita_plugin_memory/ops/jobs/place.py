"""Where a job works: the opened store, the embedder, and the folder. One value handed to every job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from amrita_plugin_memory.embedding.ports import Embedder
from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.ops.backup.extras import INDEX, Extras
from amrita_plugin_memory.ops.bot.database import MemoTable
from amrita_plugin_memory.ops.upkeep.rebuild import Pace
from amrita_plugin_memory.ops.upkeep.sources import TextOf, document_of, summaries
from amrita_plugin_memory.retrieval import GatedStore
from amrita_plugin_memory.settings import EnvSettings


@dataclass(frozen=True, slots=True)
class Place:
    """``knowledge`` is the name of the knowledge collection; ``memos`` is None when L1 is left alone."""

    store: GatedStore
    embedder: Embedder
    env: EnvSettings
    data_dir: Path
    knowledge: str
    memos: MemoTable | None = None
    memo_limit: int = 1000
    pace: Pace = field(default_factory=Pace)

    @property
    def backups(self) -> Path:
        """Where backups are."""
        return self.data_dir / "backups"

    @property
    def is_shared(self) -> bool:
        """Whether other programs may write to the store meanwhile: a server has no lock of ours."""
        return self.env.vector_db_type == "remote"

    @property
    def collections(self) -> tuple[str, str]:
        """The collections that carry a fingerprint: facts, and knowledge."""
        return COLLECTION, self.knowledge

    def text_of(self, name: str) -> Callable[[], TextOf]:
        """What the vectors of this collection are made of; the returned call reads files and may block."""
        return (lambda: document_of) if name == COLLECTION else partial(summaries, self.data_dir / INDEX)

    def extras(self) -> Extras:
        """What a backup holds besides the facts; lists files and may block."""
        memos = self.memos
        return Extras.of(self.data_dir, memos.rows) if memos else Extras.of(self.data_dir)
