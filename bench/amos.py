"""Our AMOS library beside tinymem-os on the same data, in one run, as ratios.

    python bench/amos.py [--size 10000] [--only search,export] [--json out.json]

Both open roots with the same files, written here in the common format. Each operation is timed on both sides one after
the other, several times; the middle value counts. ``cpu`` is the processor time of the whole process with its threads,
which other programs on the machine disturb least; ``wall`` is what a caller waits. Ours syncs every write to the disk
(``fsync=True``), the reference none, so the share of ``wall`` beyond ``cpu`` is mostly the disk: the line says how long
the disk alone takes for the same syncs, and that is the bound no code can pass. An import also makes files, which costs
the system more than us (ten times more or less on the same disk from one minute to the next): that bound is printed as
well, and ``TMPDIR=/dev/shm`` shows both sides without a disk.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    import tinymem_os
except ImportError:
    sys.exit("tinymem-os is not installed; it stands in the dev group of pyproject.toml")

from amrita_plugin_memory.amos import AMOS

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "server", "router", "python", "memory", "travel",
         "hotel", "coffee", "music", "garden")  # fmt: skip
SIGNS = "用户喜欢经济型酒店计划去杭州旅行西湖天气不错推荐咖啡馆音乐花园服务器路由记忆程序员周末爬山讨厌香菜"
MANIFEST = {"amos_version": "2.0", "name": "bench", "description": None, "author": "system", "model": None,
            "env_vars": [], "required_capabilities": {}, "version": "2.0.0"}  # fmt: skip
WANTED = {"add_turn": 5, "build_messages": 20, "search": 200, "add_knowledge": 100, "export": 10, "import": 10}


@dataclass(frozen=True)
class Took:
    """Seconds of one operation."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Row:
    """One operation on both sides."""

    name: str
    what: str
    theirs: Took
    ours: Took
    syncs: int  # per operation, ours
    floor: Took | None = None  # what the system takes for the files alone

    @property
    def cpu_ratio(self) -> float:
        """How many times less processor time ours takes."""
        return self.theirs.cpu / self.ours.cpu

    @property
    def wall_ratio(self) -> float:
        """How many times less a caller of ours waits."""
        return self.theirs.wall / self.ours.wall


def text(seed: int, signs: int = 120) -> str:
    rnd = random.Random(seed)
    words = " ".join(rnd.choice(WORDS) for _ in range(8))
    return f"# 条目{seed}\n{words}\n" + "".join(rnd.choice(SIGNS) for _ in range(signs))


def new_root(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "users/u1").mkdir(parents=True)
    (folder / "version.txt").write_text("2.0.0")
    (folder / "cache_version.txt").write_text("{}")
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    (folder / "users/u1/soul.md").write_text("人格")
    (folder / "users/u1/profile.md").write_text("# 画像\n- 程序员")
    return folder


def with_session(folder: Path, turns: int) -> Path:
    session = new_root(folder) / "users/u1/sessions/s1"
    session.mkdir(parents=True)
    with (session / "messages.jsonl").open("w", encoding="utf-8") as file:
        for turn in range(turns):
            for role in ("user", "assistant"):
                line = {"role": role, "content": text(turn, 60), "ts": "2026-01-01T00:00:00Z"}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return folder


def with_knowledge(folder: Path, count: int) -> Path:
    new_root(folder)
    index: dict[str, Any] = {}
    for number in range(count):
        domain, name, body = f"d{number % 50}", f"e{number}", text(number)
        path = folder / f"users/u1/knowledge/{domain}/{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
        index[path.relative_to(folder).as_posix()] = {
            "kind": "memory", "type": "knowledge", "name": f"{domain}/{name}",
            "keywords": re.findall(r"[A-Za-z0-9_]+|[\u4e00-\u9fff]+", body)[:20], "tags": [],
            "uri": f"amos://knowledge/{domain}/{name}",
        }  # fmt: skip
    (folder / "index.json").write_text(json.dumps(index, ensure_ascii=False, indent=2), encoding="utf-8")
    return folder


async def open_ours(root: Path, **more: Any) -> Any:
    return await AMOS.create(root_dir=root, actor="u1", session_id="s1", max_history_turns=10**9, **more)


async def open_theirs(root: Path) -> Any:
    options = tinymem_os.AMOSOptions(root_dir=str(root), actor="u1", session_id="s1", max_history_turns=10**9)
    return await tinymem_os.AMOS.create(options)


async def timed(work: Callable[[], Awaitable[Any]], times: int) -> Took:
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        await work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Took(statistics.median(cpus), statistics.median(walls))


def sync_time(folder: Path, times: int = 30) -> float:
    """Seconds one fsync of a small file takes here."""
    took = []
    for number in range(times):
        with (folder / f"sync{number}").open("wb") as file:
            file.write(b"x" * 400)
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - begun)
    return statistics.median(took)


async def creation_time(folder: Path, count: int) -> Took:
    """What the system takes to make so many small files, without any of our work."""
    places = iter(range(9))

    async def make() -> None:
        floor = folder / f"floor{next(places)}"
        for number in range(50):
            (floor / f"d{number}").mkdir(parents=True)
        for number in range(count):
            fd = os.open(f"{floor}/d{number % 50}/e{number}.md", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(fd, b"x" * 450)
            os.close(fd)

    return await timed(make, 3)


async def bench_add_turn(folder: Path, size: int) -> Row:
    theirs, ours = (
        await open_theirs(with_session(folder / "a", size)),
        await open_ours(with_session(folder / "b", size)),
    )
    await ours.add_turn("s1", "warm", "up")
    row = Row(
        "add_turn",
        f"default session of {size} turns",
        await timed(lambda: theirs.add_turn("s1", text(1, 60), text(2, 60)), 20),
        await timed(lambda: ours.add_turn("s1", text(1, 60), text(2, 60)), 100),
        2,
    )
    await ours.close()
    return row


async def bench_build_messages(folder: Path, size: int) -> Row:
    """Ours compresses at 20 turns as a bot does, so both return some twenty messages of a session of ``size`` turns."""
    theirs = await open_theirs(with_session(folder / "a", size))
    ours = await AMOS.create(root_dir=with_session(folder / "b", size), actor="u1", session_id="s1",
                             keep_recent_turns=10, summarize_fn=lambda told, _: told[:200])  # fmt: skip
    await ours.compress_session("s1", True)
    ask = "推荐杭州酒店 hotel"
    await ours.build_messages("s1", ask)
    row = Row(
        "build_messages",
        f"session of {size} turns, with retrieval",
        await timed(lambda: theirs.build_messages("s1", ask), 5),
        await timed(lambda: ours.build_messages("s1", ask), 50),
        0,
    )
    await ours.close()
    return row


async def bench_search(folder: Path, size: int) -> Row:
    theirs, ours = (
        await open_theirs(with_knowledge(folder / "a", size)),
        await open_ours(with_knowledge(folder / "b", size)),
    )
    begun = time.perf_counter()
    await ours.search("hotel 杭州", 5)
    print(f"  first search of ours, which indexes {size} files: {time.perf_counter() - begun:.1f} s", file=sys.stderr)
    row = Row(
        "search",
        f"{size} files, top 5",
        await timed(lambda: theirs.search("hotel 杭州", 5), 3),
        await timed(lambda: ours.search("hotel 杭州", 5), 50),
        0,
    )
    await ours.close()
    return row


async def bench_add_knowledge(folder: Path, size: int) -> Row:
    theirs, ours = (
        await open_theirs(with_knowledge(folder / "a", size)),
        await open_ours(with_knowledge(folder / "b", size)),
    )
    numbers = iter(range(10**9))
    await ours.add_knowledge("bench", "warm", "up")

    async def add(amos: Any) -> None:
        number = next(numbers)
        await amos.add_knowledge("bench", f"n{number}", text(number))

    row = Row(
        "add_knowledge",
        f"index of {size} entries",
        await timed(lambda: add(theirs), 7),
        await timed(lambda: add(ours), 100),
        4,
    )
    await ours.close()
    return row


async def bench_packages(folder: Path, size: int) -> list[Row]:
    theirs, ours = (
        await open_theirs(with_knowledge(folder / "a", size)),
        await open_ours(with_knowledge(folder / "b", size)),
    )
    out_theirs = await timed(lambda: theirs.export_agent(str(folder / "theirs.amos")), 1)
    out_ours = await timed(lambda: ours.export_agent(str(folder / "ours.amos")), 3)
    await ours.close()
    peer = await open_theirs(new_root(folder / "c"))
    in_theirs = await timed(lambda: peer.portability_manager.import_bundle(str(folder / "theirs.amos")), 1)
    times = []
    for attempt in range(3):
        into = await open_ours(new_root(folder / f"d{attempt}"))
        times.append(await timed(lambda: into.import_bundle(folder / "ours.amos"), 1))  # noqa: B023
        await into.close()
    in_ours = sorted(times, key=lambda took: took.cpu)[1]
    for name in ("theirs", "ours"):
        print(f"  {name}.amos: {(folder / f'{name}.amos').stat().st_size:,} bytes", file=sys.stderr)
    return [
        Row("export", f"{size} files", out_theirs, out_ours, 1),
        Row("import", f"{size} files", in_theirs, in_ours, 1, await creation_time(folder, size)),
    ]


async def run(only: list[str], size: int, folder: Path) -> list[Row]:
    rows: list[Row] = []
    single = {"add_turn": bench_add_turn, "build_messages": bench_build_messages, "search": bench_search,
              "add_knowledge": bench_add_knowledge}  # fmt: skip
    for name, bench in single.items():
        if not only or name in only:
            rows.append(await bench(folder, size))
            report(rows[-1], sync_time(folder))
    if not only or {"export", "import"} & set(only):
        for row in await bench_packages(folder, size):
            rows.append(row)
            report(row, sync_time(folder))
    return rows


def report(row: Row, sync: float) -> None:
    wanted = WANTED[row.name]
    if row.floor is not None:
        most = row.theirs.cpu / row.floor.cpu
        print(
            f"{'':15} making the files alone takes the system {row.floor.cpu * 1e3:.0f} ms cpu,"
            f" {row.floor.wall * 1e3:.0f} ms wall: nothing on this disk can be more than {most:.1f} x faster"
        )
    verdict = "reached" if row.cpu_ratio >= wanted else "NOT reached"
    print(
        f"{row.name:15} {row.what}\n"
        f"{'':15} theirs {row.theirs.cpu * 1e3:10.2f} ms cpu {row.theirs.wall * 1e3:10.2f} ms wall\n"
        f"{'':15} ours   {row.ours.cpu * 1e3:10.2f} ms cpu {row.ours.wall * 1e3:10.2f} ms wall"
        f"   (disk alone: {row.syncs} syncs x {sync * 1e3:.2f} ms = {row.syncs * sync * 1e3:.2f} ms)\n"
        f"{'':15} ratio  {row.cpu_ratio:10.1f} x cpu   {row.wall_ratio:9.1f} x wall   wanted {wanted} x: {verdict}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--only", default="", help="comma-separated: " + ", ".join(WANTED))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    print(f"python {sys.version.split()[0]}, tinymem-os {tinymem_os.VERSION}, {os.cpu_count()} cores, "
          f"load {os.getloadavg()[0]:.1f}, size {args.size}")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="amos-bench-") as folder:
        rows = asyncio.run(run([name for name in args.only.split(",") if name], args.size, Path(folder)))
    if args.json:
        found = [dataclasses.asdict(row) for row in rows]
        args.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
