"""Upkeep of many facts beside raw Chroma: rows a second and peak memory, both sides from one run.

    python bench/upkeep.py [--rows 100000] [--dimension 64] [--steps status,backup,migrate,reindex,verify]

Each step runs in a process of its own on the same data, so that its peak memory (ru_maxrss) is its own. Vectors are
drawn from a hash and cost next to nothing: what is measured is the store and our work around it. ``raw`` is a plain
loop of ``collection.add`` of the same rows in batches of 500, and the memory it takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "tests")]

from support.kills import opened  # noqa: E402
from support.upkeep import Light, fact  # noqa: E402

STEPS = ("raw", "fill", "status", "backup", "verify", "migrate", "reindex", "restore dry run")


def rows_of(start: int, count: int):
    tail = "要记住的内容" * 5
    return [fact(i, key=f"user_{i % 1000}", text=f"第 {i} 件事：{tail}") for i in range(start, start + count)]


def raw(folder: Path, rows: int, dimension: int) -> None:
    import chromadb

    light = Light(model="old", dimension=dimension)
    collection = chromadb.PersistentClient(str(folder / "raw")).create_collection("raw", embedding_function=None)
    for start in range(0, rows, 500):
        part = rows_of(start, min(500, rows - start))
        vectors = asyncio.run(light.embed([r.document for r in part], purpose="passage"))
        collection.add(
            ids=[r.id for r in part],
            documents=[r.document for r in part],
            metadatas=[dict(r.metadata) for r in part],
            embeddings=list(vectors),
        )


async def fill(folder: Path, rows: int, dimension: int) -> None:
    from support.upkeep import fill as put

    at = await opened(folder, Light(model="old", dimension=dimension))
    for start in range(0, rows, 500):
        await put(at.store, rows_of(start, min(500, rows - start)), at.embedder, claim=start == 0)
        at.embedder.calls.clear()
    await at.store.aclose()


class Forgetful(Light):
    """Keeps no record of its calls, which would be most of the memory measured."""

    async def embed(self, texts, *, purpose, deadline=None):
        """As Light does."""
        vectors = await Light.embed(self, texts, purpose=purpose, deadline=deadline)
        self.calls.clear()
        return vectors


async def upkeep(step: str, folder: Path, dimension: int) -> None:
    from amrita_plugin_memory.facts import COLLECTION
    from amrita_plugin_memory.ops.backup.read import check
    from amrita_plugin_memory.ops.backup.shelf import listed
    from amrita_plugin_memory.ops.jobs.reindex import back_up, reindex
    from amrita_plugin_memory.ops.jobs.restore import restore
    from amrita_plugin_memory.ops.upkeep.keys import migrate
    from amrita_plugin_memory.ops.upkeep.progress import Meter

    if step == "verify":
        check(listed(folder / "backups")[0].path)
        return
    at = await opened(folder, Forgetful(model="new", dimension=dimension))
    if step == "backup":
        await back_up(at, reason="bench")
    elif step == "migrate":
        collection = await at.store.open(COLLECTION)
        await migrate(collection, None, limit=1000, meter=Meter("keys", 0, at.pace.clock))
    elif step == "reindex":
        await reindex(at, COLLECTION)
    elif step == "restore dry run":
        await restore(at, listed(at.backups)[0].path, dry_run=True)
    await at.store.aclose()


def child(step: str, folder: Path, rows: int, dimension: int) -> None:
    begun = time.monotonic()
    if step == "raw":
        raw(folder, rows, dimension)
    elif step == "fill":
        asyncio.run(fill(folder, rows, dimension))
    elif step == "status":
        from amrita_plugin_memory.vectordb.peek import peek

        assert peek(folder / "vector_db.chroma", partitions_of="amrita_user_memory")[0].rows == rows
    else:
        asyncio.run(upkeep(step, folder, dimension))
    seconds = time.monotonic() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"step": step, "seconds": round(seconds, 2), "peak_mb": round(peak)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=64)
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], Path(options.child[1]), options.rows, options.dimension)
        return
    wanted = [step for step in STEPS if step in options.steps.split(",") or step == "fill"]
    folder = Path(tempfile.mkdtemp(prefix="upkeep-"))
    print(f"{options.rows} rows of {options.dimension} dimensions, load {os.getloadavg()[0]:.1f}")
    print(f"{'step':<18}{'seconds':>9}{'rows/s':>10}{'peak MB':>9}")
    try:
        for step in wanted:
            command = [sys.executable, __file__, "--rows", str(options.rows), "--dimension", str(options.dimension)]
            done = subprocess.run([*command, "--child", step, str(folder)], capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{step:<18} failed: {done.stderr[-300:]}")
                continue
            one = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{step:<18}{one['seconds']:>9}{options.rows / max(one['seconds'], 0.01):>10.0f}{one['peak_mb']:>9}",
                flush=True,
            )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
