"""What tests of upkeep share: a filled store, a place to work in, and a store that dies after so many calls."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from amrita_plugin_memory.embedding import FakeEmbedder
from amrita_plugin_memory.embedding.fake import Call
from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable
from amrita_plugin_memory.ops.jobs.place import Place
from amrita_plugin_memory.ops.upkeep.rebuild import Pace
from amrita_plugin_memory.retrieval import GatedStore, SpaceGuard
from amrita_plugin_memory.settings import EnvSettings
from amrita_plugin_memory.vectordb import MemoryStore, Row


@dataclass(slots=True)
class Light(FakeEmbedder):
    """A FakeEmbedder for many rows: a vector is drawn from the text's hash, so that only equal texts are alike."""

    async def embed(self, texts, *, purpose, deadline=None):
        self.calls.append(Call(tuple(texts), purpose))
        if self.hang:
            await asyncio.Event().wait()
        if self.down or self.closed or (self.fail_after is not None and len(self.calls) > self.fail_after):
            raise EmbeddingUnavailable("嵌入服务没有应答（测试中关闭），请稍后再试")
        return np.stack([drawn(self.model, self.dimension, text) for text in texts])


def drawn(model, dimension, text):
    seed = hashlib.blake2b(f"{model} {text}".encode(), digest_size=8).digest()
    row = np.resize(np.frombuffer(hashlib.shake_256(seed).digest(dimension), dtype=np.int8), dimension)
    return (row / np.linalg.norm(row.astype(np.float32))).astype(np.float32)


async def no_sleep(_: float) -> None:
    """Time passes at once."""


def fact(number: int, *, key: str = "QQPlatform_Private_1", scope: str = "user", text: str = "") -> Row:
    metadata = {
        "user_id": key,
        "scope": scope,
        "tags": "",
        "importance": "medium",
        "created_at": "2026-01-01T00:00:00+00:00",
    }
    return Row(f"{number:032x}", text or f"第 {number} 件要记住的事", metadata)


async def fill(store, rows, embedder, *, name=COLLECTION, claim=True):
    """A collection with these rows, embedded and marked by this embedder."""
    collection = await store.open(name)
    if claim:
        await SpaceGuard(embedder).claim(collection)
    for start in range(0, len(rows), 500):
        part = rows[start : start + 500]
        vectors = await embedder.embed([row.document or "空" for row in part], purpose="passage")
        await collection.add([Row(r.id, r.document, r.metadata, v) for r, v in zip(part, vectors, strict=True)])
    return collection


def place(data_dir: Path, *, store=None, embedder=None, report=None, memos=None, **env) -> Place:
    pace = Pace(batch=env.get("reembed_batch_size", 64), sleep=no_sleep, **({"report": report} if report else {}))
    return Place(
        store=store or GatedStore(MemoryStore()),
        embedder=embedder or Light(),
        env=EnvSettings(**env),
        data_dir=data_dir,
        knowledge="amrita_global_knowledge",
        memos=memos,
        pace=pace,
    )


async def contents(store, name=COLLECTION):
    """Id → (document, metadata, vector) of every row; fails when an id comes twice."""
    collection = await store.open(name, create=False)
    found = {}
    async for page in collection.pages(vectors=True):
        for row in page:
            assert row.id not in found
            found[row.id] = (row.document, dict(row.metadata), row.vector)
    return found


async def whole_space(store, embedder, name=COLLECTION):
    """True when every vector of the collection is this embedder's vector of its document."""
    rows = list((await contents(store, name)).values())
    expected = await embedder.embed([document for document, _, _ in rows], purpose="passage")
    return all(v.shape == e.shape and np.allclose(v, e, atol=1e-5) for (_, _, v), e in zip(rows, expected, strict=True))


class Killed(BaseException):
    """The process is gone: nothing after this ran."""


class Mortal:
    """A store that dies at its n-th changing call, before or after the change is made; what was stored stays."""

    def __init__(self, inner, *, after: int, late: bool) -> None:
        self.inner = inner
        self.left = after
        self.late = late
        self.calls = 0

    async def change(self, call, *args, **kwargs):
        self.calls += 1
        dying = self.calls == self.left
        if self.calls > self.left or (dying and not self.late):
            raise Killed
        result = await call(*args, **kwargs)
        if dying:
            raise Killed
        return result

    async def open(self, name, *, create=True):
        if create and name not in await self.inner.names():
            collection = await self.change(self.inner.open, name)
        else:
            collection = await self.inner.open(name, create=False)
        return None if collection is None else MortalCollection(self, collection)

    async def names(self):
        return await self.inner.names()

    async def drop(self, name):
        await self.change(self.inner.drop, name)

    async def rename(self, old, new):
        await self.change(self.inner.rename, old, new)

    async def swap(self, name, replacement, *, aside):
        await self.change(self.inner.rename, name, aside)
        await self.change(self.inner.rename, replacement, name)

    async def aclose(self):
        pass


class MortalCollection:
    def __init__(self, store, inner) -> None:
        self._store = store
        self._inner = inner
        for name in ("metadata", "count", "get", "partition", "size", "pages", "name"):
            setattr(self, name, getattr(inner, name))

    async def annotate(self, changes):
        await self._store.change(self._inner.annotate, changes)

    async def add(self, rows):
        await self._store.change(self._inner.add, rows)

    async def update(self, rows):
        await self._store.change(self._inner.update, rows)

    async def delete(self, ids):
        return await self._store.change(self._inner.delete, ids)
