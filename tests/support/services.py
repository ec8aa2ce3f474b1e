"""The services over in-memory twins, for tests that need no process."""

from __future__ import annotations

from dataclasses import dataclass

from amrita_plugin_memory.embedding.fake import FakeEmbedder
from amrita_plugin_memory.facts import Facts
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.scope import Caller, UniId
from amrita_plugin_memory.memo import Memo, MemoryMemoStore
from amrita_plugin_memory.retrieval import Recall
from amrita_plugin_memory.vectordb import MemoryStore

ZHANG = Caller(UniId.private(10001))
LI = Caller(UniId.private(10002))
MEMBER = Caller(UniId.private(10001), UniId.group(20001), role="member")
ADMIN = Caller(UniId.private(10003), UniId.group(20001), role="admin")


@dataclass
class Twins:
    """What a test may reach into."""

    facts: Facts
    memo: Memo
    embedder: FakeEmbedder
    store: MemoryStore
    memos: MemoryMemoStore
    clock: ManualClock


def make(*, limit: int = 50, memo_limit: int = 1000, embedder: FakeEmbedder | None = None, store=None) -> Twins:
    """Fresh services; hand in ``store`` to start another program on the same data."""
    clock = ManualClock()
    embedder = embedder or FakeEmbedder()
    store = store or MemoryStore()
    memos = MemoryMemoStore(clock)
    facts = Facts(store=store, embedder=embedder, recall=Recall(embedder), clock=clock, limit=lambda: limit)
    return Twins(facts, Memo(memos, limit=lambda: memo_limit), embedder, store, memos, clock)
