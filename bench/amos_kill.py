"""Kill writers of one AMOS root at random moments, and count what was lost or doubled.

    python bench/amos_kill.py [--runs 200] [--seed 1] [--root DIR]      kill -9 over turns, compression, index, import
    python bench/amos_kill.py --crowd 4 --turns 250                     processes that write one session at once

Every run goes on with the root the last one left. A turn counts as acknowledged when ``add_turn`` has returned.
The last line is one JSON object; the exit code is 0 when nothing was lost, doubled or unreadable.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from amrita_plugin_memory.amos import AMOS

IMPORTED = 40  # knowledge entries in the package that is imported over and over


async def open_root(root: Path) -> AMOS:
    return await AMOS.create(root_dir=root, actor="u1", session_id="s1", summarize_fn=lambda text, _: f"s{len(text)}")


async def write_for_ever(root: Path, run: int, say: Callable[[str], None]) -> None:
    amos = await open_root(root)
    say("")
    for at in range(10**9):
        name = f"{run}-{at}"
        await amos.add_turn(name, "answer")
        say(f"turn {name}")
        if at % 3 == 0:
            await amos.add_knowledge(f"d{run % 7}", f"e{name}", "knowledge " * 5)
            await amos.add_tag(f"users/u1/knowledge/d{run % 7}/e{name}.md", f"tag{name}")
            say(f"tag {name}")
            await amos.append_profile("facts", f"- {name}")
            say(f"fact {name}")


async def import_for_ever(root: Path, run: int, say: Callable[[str], None]) -> None:
    from amrita_plugin_memory.amos import ImportOptions

    amos = await open_root(root)
    say("")
    for at in range(10**9):
        actor = f"guest{run}x{at}"
        await amos.import_bundle(root.parent / "guest.amos", ImportOptions(actor_mapping={"guest": actor}))
        say(f"import {actor}")


async def make_package(root: Path, _: int, say: Callable[[str], None]) -> None:
    amos = await AMOS.create(root_dir=root.parent / "guest", actor="guest", fsync=False)
    for at in range(IMPORTED):
        await amos.add_knowledge("d", f"e{at}", "guest " * 50)
    await amos.export_agent(root.parent / "guest.amos")
    await amos.close()
    say("done package")


async def crowd(root: Path, run: int, say: Callable[[str], None]) -> None:
    amos = await open_root(root)
    for at in range(int(os.environ["TURNS"])):
        await amos.add_turn(f"{run}-{at}", "answer")
        say(f"turn {run}-{at}")
    await amos.close()


async def look(root: Path, _: int, say: Callable[[str], None]) -> None:
    """What a fresh process finds in the root, as one JSON line."""
    amos = await open_root(root)
    await amos.build_messages("s1", "hi")
    await amos.search("knowledge")
    folder = root / "users/u1/sessions/s1"
    files = [*folder.glob("archive/*.jsonl"), folder / "messages.jsonl"]
    lines = [line for file in files if file.exists() for line in file.read_bytes().split(b"\n") if line.strip()]
    records = [json.loads(line) for line in lines]
    entries = amos.handle.root.index.entries()
    guests = {path.name: len(list(path.rglob("*.md"))) for path in (root / "users").glob("guest*")}
    found = {
        "turns": [record["content"] for record in records if record["role"] == "user"],
        "answers": sum(record["role"] == "assistant" for record in records),
        "tags": sorted(tag for entry in entries.values() for tag in entry.get("tags", [])),
        "facts": (await amos.get_profile()).split("\n"),
        "guests": guests,
    }
    await amos.close()
    say(json.dumps(found))


def spawn(work: Callable[..., Coroutine[Any, Any, None]], root: Path, run: int) -> tuple[int, int]:
    """A forked process at work, and the pipe it speaks into."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    os.close(read)
    try:
        asyncio.run(work(root, run, lambda text: os.write(write, text.encode() + b"\n") and None))
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - the border of the process
        os.write(2, f"{work.__name__}: {error!r}\n".encode())
        os._exit(1)


def drain(pipe: int) -> list[str]:
    with os.fdopen(pipe, "rb") as file:
        return [line for line in file.read().decode().split("\n")[:-1] if line]


def finish(work: Callable[..., Coroutine[Any, Any, None]], root: Path) -> list[str]:
    pid, pipe = spawn(work, root, 0)
    said = drain(pipe)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise SystemExit(f"{work.__name__} failed")
    return said


def judge(root: Path, acknowledged: list[str]) -> dict[str, int]:
    found = json.loads(finish(look, root)[-1])
    pairs = [line.split(" ") for line in acknowledged]
    said = {kind: [name for word, name in pairs if word == kind] for kind in ("turn", "tag", "fact", "import")}
    turns, tags, facts = Counter(found["turns"]), Counter(found["tags"]), Counter(found["facts"])
    return {
        "turns": len(said["turn"]),
        "turns_lost": sum(not turns[name] for name in said["turn"]),
        "turns_doubled": sum(count - 1 for count in turns.values()),
        "halves": abs(len(found["turns"]) - found["answers"]),
        "tags": len(said["tag"]),
        "tags_lost": sum(not tags[f"tag{name}"] for name in said["tag"]),
        "facts_lost": sum(not facts[f"- {name}"] for name in said["fact"]),
        "facts_doubled": sum(count - 1 for name, count in facts.items() if name.startswith("- ")),
        "imports": len(said["import"]),
        "imports_lost": sum(found["guests"].get(name, 0) != IMPORTED for name in said["import"]),
        "imports_torn": sum(0 < count < IMPORTED for count in found["guests"].values()),
    }


def kill_runs(root: Path, runs: int, rng: random.Random) -> dict[str, int]:
    finish(make_package, root)
    acknowledged: list[str] = []
    for run in range(runs):
        importing = run % 5 == 4
        pid, pipe = spawn(import_for_ever if importing else write_for_ever, root, run)
        os.read(pipe, 1)  # it has opened the root
        time.sleep(rng.random() * (1.5 if importing else 0.7))
        os.kill(pid, signal.SIGKILL)
        acknowledged += drain(pipe)
        os.waitpid(pid, 0)
        if run % 20 == 19:
            print(f"{run + 1} runs: {judge(root, acknowledged)}", file=sys.stderr, flush=True)
    return {"runs": runs, **judge(root, acknowledged)}


def crowd_run(root: Path, processes: int, turns: int) -> dict[str, int | float]:
    os.environ["TURNS"] = str(turns)
    begun = time.perf_counter()
    pids = [spawn(crowd, root, number) for number in range(processes)]
    acknowledged = [line for _, pipe in pids for line in drain(pipe)]
    failed = sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 for pid, _ in pids)
    seconds = round(time.perf_counter() - begun, 1)
    return {"processes": processes, "failed": failed, "seconds": seconds, **judge(root, acknowledged)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--crowd", type=int, default=0)
    parser.add_argument("--turns", type=int, default=250)
    args = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="amos-kill-")) if args.root is None else args.root
    try:
        root = place / "root"
        root.mkdir(parents=True, exist_ok=True)
        if args.crowd:
            result = crowd_run(root, args.crowd, args.turns)
        else:
            result = kill_runs(root, args.runs, random.Random(args.seed))
    finally:
        if args.root is None:
            shutil.rmtree(place, ignore_errors=True)
    print(json.dumps(result))
    good = ("runs", "processes", "seconds", "turns", "tags", "imports")
    sys.exit(any(value for name, value in result.items() if name not in good))


if __name__ == "__main__":
    main()
