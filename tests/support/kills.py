"""Kill a job of upkeep at random points, many times, on real Chroma, and look at what is left each time.

    python tests/support/kills.py --job reindex --count 50 --seed 1

Chroma is imported once and every run is a fork, since importing it takes longer than a run. Every second kill is aimed
at the moment in which Chroma writes its vector index over itself, which chance alone hits once in fifty. Prints one
JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.ops.backup.shelf import listed
from amrita_plugin_memory.ops.bot.database import MemoTable
from amrita_plugin_memory.ops.jobs.place import Place
from amrita_plugin_memory.ops.jobs.reindex import back_up, heal, reindex
from amrita_plugin_memory.ops.jobs.restore import restore
from amrita_plugin_memory.ops.upkeep.keys import migrate
from amrita_plugin_memory.ops.upkeep.names import PENDING
from amrita_plugin_memory.ops.upkeep.progress import Meter
from amrita_plugin_memory.ops.upkeep.rebuild import Pace
from amrita_plugin_memory.ops.upkeep.recover import recover
from amrita_plugin_memory.retrieval import GatedStore, SpaceGuard
from amrita_plugin_memory.settings import EnvSettings
from amrita_plugin_memory.vectordb import open_store
from support.upkeep import Light, contents, fact, fill, no_sleep, whole_space

ROWS = int(os.environ.get("AMRITA_MEMORY_KILL_ROWS", "1200"))
OLD, NEW = Light(model="old", dimension=16), Light(model="new", dimension=24)
MEMO = "CREATE TABLE amrita_plugin_memory_user_memo (user_id TEXT PRIMARY KEY, content TEXT, version INTEGER, updated_at DATETIME)"


async def opened(folder, embedder):
    store = GatedStore(await open_store(EnvSettings(vector_db_timeout=60), directory=folder / "vector_db.chroma"))
    memos = MemoTable(f"sqlite:///{folder / 'db.sqlite3'}") if (folder / "db.sqlite3").is_file() else None
    return Place(
        store=store,
        embedder=embedder,
        env=EnvSettings(),
        data_dir=folder,
        knowledge="knowledge",
        memos=memos,
        pace=Pace(sleep=no_sleep),
    )


async def prepare(job, folder):
    at = await opened(folder, OLD)
    keys = "user_{}" if job == "migrate" else "QQPlatform_Private_{}"
    await fill(at.store, [fact(i, key=keys.format(i % 20)) for i in range(ROWS)], OLD)
    if job == "restore":
        await back_up(at, reason="manual")
        collection = await at.store.open(COLLECTION)
        await collection.delete([fact(i).id for i in range(ROWS * 3 // 4)])
        await collection.annotate({"key_schema_version": 2})
    if job == "migrate":
        with sqlite3.connect(folder / "db.sqlite3") as db:
            db.execute(MEMO)
            memos = [(f"user_{i}", f"备忘 {i}", 1, "2026-01-01 00:00:00.000000") for i in range(40)]
            db.executemany("INSERT INTO amrita_plugin_memory_user_memo VALUES (?, ?, ?, ?)", memos)
        db.close()
    await at.store.aclose()


async def work(job, folder, started=None):
    at = await opened(folder, NEW if job != "migrate" else OLD)
    await at.store.names()
    if started is not None:
        os.write(started, b"s")
    if job == "reindex":
        await reindex(at, COLLECTION)
    elif job == "restore":
        await restore(at, listed(at.backups)[-1].path)
    else:
        collection = await at.store.open(COLLECTION)
        await migrate(collection, at.memos, limit=1000, meter=Meter("keys", 0, at.pace.clock))
    await at.store.aclose()


async def look(job, folder):
    """Right after the kill: all there, once, old or new; then the job again: all new."""
    at = await opened(folder, OLD)
    await recover(at.store, COLLECTION)
    torn = await healed(at)
    found = await contents(at.store)
    whole = {fact(i).id for i in range(ROWS)}
    left = {fact(i).id for i in range(ROWS * 3 // 4, ROWS)}
    assert set(found) == whole or (job == "restore" and set(found) == left), f"{len(found)} rows after the kill"
    assert await whole_space(at.store, OLD) or await whole_space(at.store, NEW), "mixed vectors after the kill"
    await at.store.aclose()
    if torn:
        sys.stderr.write("a torn index was mended\n")
    await work(job, folder)
    at = await opened(folder, OLD)
    found = await contents(at.store)
    assert set(found) == whole, f"{len(found)} rows after the second run"
    assert await whole_space(at.store, OLD if job == "migrate" else NEW), "wrong vectors after the second run"
    assert {n for n in await at.store.names() if n.startswith(COLLECTION)} == {COLLECTION}
    if job == "migrate":
        assert {m["user_id"] for _, m, _ in found.values()} == {f"QQPlatform_Private_{i}" for i in range(20)}
        memos = {row.key: row.content for row in at.memos.rows()}
        assert memos == {f"QQPlatform_Private_{i}": f"备忘 {i}" for i in range(40)}
    await at.store.aclose()


async def healed(at) -> bool:
    """As the start-up check does: rows whose vectors went with a torn index get them again, of the same model."""
    collection = await at.store.open(COLLECTION)
    if not (await collection.metadata()).get(PENDING):
        return False
    for embedder in (OLD, NEW):
        if await SpaceGuard(embedder).verdict(collection) == "same":
            await heal(replace(at, embedder=embedder), COLLECTION)
    return True


def forked(body) -> int:
    """Run ``body`` in a child; its process id."""
    child = os.fork()
    if child:
        return child
    try:
        body()
    except BaseException as e:
        sys.stderr.write(f"{type(e).__name__}: {e}\n")
        os._exit(1)
    os._exit(0)


def ended_well(child) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def timed(job, folder) -> float:
    """Seconds from the start of the work to its end, undisturbed."""
    begun = time.monotonic()
    assert ended_well(run_until(job, folder, None)), "the job fails undisturbed"
    return time.monotonic() - begun


def run_until(job, folder, delay, *, save=0) -> int:
    reading, writing = os.pipe()
    child = forked(lambda: asyncio.run(work(job, folder, writing)))
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    if delay is not None:
        if save:
            wait_for_save(folder, delay, save)
        else:
            time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    return child


def wait_for_save(folder, most, times) -> None:
    """Until an index is being written for the so manieth time, at most so many seconds."""
    end = time.monotonic() + most
    for _ in range(times):
        before = saves(folder)
        while time.monotonic() < end and saves(folder) <= before:
            pass


def saves(folder) -> set:
    """Every index on the disk and when it was last written to."""
    found = set()
    for path in folder.glob("vector_db.chroma/*/index_metadata.pickle"):
        with contextlib.suppress(FileNotFoundError):
            found.add((path.parent.name, path.stat().st_mtime_ns))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=["reindex", "restore", "migrate"], required=True)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for module in ("chromadb.api.rust", "chromadb.api.models.Collection", "sqlalchemy"):
        import_module(module)
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        template = Path(temporary) / "template"
        assert ended_well(forked(lambda: asyncio.run(prepare(options.job, template)))), "cannot prepare"
        shutil.copytree(template, Path(temporary) / "timed")
        seconds = timed(options.job, Path(temporary) / "timed")
        result = {"job": options.job, "kills": 0, "finished": 0, "bad": [], "seconds": round(seconds, 2)}
        for number in range(3 * options.count):
            if result["kills"] == options.count:
                break
            folder = Path(temporary) / str(number)
            shutil.copytree(template, folder)
            save = dice.randint(1, 2) if number % 2 else 0
            delay = seconds if save else dice.uniform(0, seconds)
            killed = not ended_well(run_until(options.job, folder, delay, save=save))
            result["kills" if killed else "finished"] += 1
            if not killed and not save:  # a run that was timed on a busier machine: aim nearer
                seconds *= 0.8
            if not ended_well(forked(lambda folder=folder: asyncio.run(look(options.job, folder)))):
                result["bad"].append(round(delay, 3))
            shutil.rmtree(folder)
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
