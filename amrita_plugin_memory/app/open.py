"""Build the services from settings and ports, and close what was opened, in reverse order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amrita_plugin_memory.embedding import build_embedder
from amrita_plugin_memory.embedding.ports import Embedder
from amrita_plugin_memory.facts import COLLECTION, Facts
from amrita_plugin_memory.kernel.clock import Clock, SystemClock
from amrita_plugin_memory.knowledge import AmosEntryFiles, Knowledge
from amrita_plugin_memory.memo import Memo, MemoStore
from amrita_plugin_memory.retrieval import GatedStore, Recall, leaning_of, recorded
from amrita_plugin_memory.settings import EnvSettings, FileSettings
from amrita_plugin_memory.subconscious import Subconscious
from amrita_plugin_memory.vectordb import VectorStore, open_store

from .deferred import DeferredEmbedder
from .erase import Erasure
from .l3 import L3, Below, L3Ports, open_l3

CHROMA: Final = "vector_db.chroma"  # name of the local store below the data directory, as the published plugin has it


@dataclass(frozen=True, slots=True)
class MemoryApp:
    """The services of one running program. Doors hold this and nothing below it. ``l3`` is None while it is off."""

    facts: Facts
    memo: Memo
    store: GatedStore
    embedder: Embedder
    erasure: Erasure
    l3: L3 | None = None

    @property
    def knowledge(self) -> Knowledge | None:
        """The knowledge base; None while L3 or the base is off."""
        return self.l3.knowledge if self.l3 else None

    @property
    def subconscious(self) -> Subconscious | None:
        """L3; None while it is off."""
        return self.l3.service if self.l3 else None


@asynccontextmanager
async def open_app(
    *,
    env: EnvSettings,
    file: Callable[[], FileSettings],
    data_dir: Path,
    memo_store: MemoStore,
    l3: L3Ports | None = None,
    clock: Clock | None = None,
    store: VectorStore | None = None,
    embedder: Embedder | None = None,
) -> AsyncGenerator[MemoryApp]:
    """Open the services. Nothing is contacted yet: a store or service that is down shows at its first use.

    ``file`` is asked each time a bound is needed, so that an edited config.toml counts at once.
    """
    time = clock or SystemClock()
    async with AsyncExitStack() as stack:
        opened = GatedStore(store or await open_store(env, directory=data_dir / CHROMA))
        stack.push_async_callback(opened.aclose)
        chosen = embedder or DeferredEmbedder(lambda: _choose(env, opened))
        stack.push_async_callback(chosen.aclose)
        recall = Recall(chosen, leaning=lambda: leaning_of(file().recall))
        facts = Facts(
            store=opened,
            embedder=chosen,
            recall=recall,
            clock=time,
            limit=lambda: file().per_session_memory_limit,
        )
        memo = Memo(memo_store, limit=lambda: file().memo_max_chars)

        def knowledge(files: AmosEntryFiles) -> Knowledge:
            return Knowledge(
                files=files,
                store=opened,
                embedder=chosen,
                recall=recall,
                clock=time,
                collection=file().subconscious.knowledge_collection_name,
                max_chars=lambda: file().subconscious.knowledge_max_chars,
            )

        below = Below(facts=facts, memo=memo, knowledge=knowledge, file=file, data_dir=data_dir, clock=time)
        wanted = file().subconscious
        running = await open_l3(l3, below, stack=stack) if l3 and wanted.enabled and wanted.targets else None
        erasure = Erasure(below, states=l3.states if l3 else None, l3=running)
        yield MemoryApp(facts=facts, memo=memo, store=opened, embedder=chosen, erasure=erasure, l3=running)


async def _choose(env: EnvSettings, store: VectorStore) -> Embedder:
    collection = await store.open(COLLECTION)
    space = recorded(await collection.metadata()) if collection else None
    return build_embedder(env, recorded=space)
