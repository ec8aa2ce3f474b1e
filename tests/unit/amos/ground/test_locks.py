import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from support.amos import P, file_root, listing, python, wait_for

from amrita_plugin_memory.amos.ground import holders
from amrita_plugin_memory.kernel.errors import Locked


@pytest.fixture
def files(tmp_path):
    return file_root(tmp_path)


def lock_file(files, record):
    path = files.root / "a.json.lock"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    return path


def dead_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_threads_enter_one_at_a_time(files):
    inside, most = [], []

    def work():
        for _ in range(20):
            with files.lock(P("a.json")):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert max(most) == 1
    assert len(most) == 80
    assert listing(files.root) == []


async def test_tasks_enter_one_at_a_time(files):
    inside, most = [], []

    async def work():
        async with files.lock(P("a.json")):
            inside.append(1)
            most.append(len(inside))
            await asyncio.sleep(0)
            inside.pop()

    await asyncio.gather(*(work() for _ in range(20)))
    assert most == [1] * 20
    assert listing(files.root) == []


def test_the_lock_file_is_what_the_reference_writes_with_keys_of_ours(files):
    with files.lock(P("a.json")) as lock:
        record = json.loads(lock.file.read_text())
    assert lock.file.name == "a.json.lock"
    assert record["pid"] == os.getpid()
    assert abs(record["ts"] / 1000 - time.time()) < 60
    assert {"token", "host", "start"} <= set(record)


@pytest.mark.parametrize(
    "record",
    [
        lambda: {"pid": dead_pid(), "ts": time.time() * 1000},
        lambda: {"pid": dead_pid(), "ts": time.time() * 1000, "token": "x", "host": socket.gethostname(), "start": 1.0},
        lambda: {
            "pid": os.getpid(),
            "ts": time.time() * 1000,
            "token": "x",
            "host": socket.gethostname(),
            "start": 1.0,
        },
        lambda: {"pid": os.getpid(), "ts": (time.time() - 60) * 1000},
        lambda: {"pid": 1, "ts": (time.time() - 60) * 1000, "token": "x", "host": "another-machine"},
        lambda: {"pid": "?", "ts": None},
    ],
    ids=[
        "reference, dead",
        "ours, dead",
        "process id reused",
        "reference, alive but old",
        "another machine, old",
        "nonsense",
    ],
)
def test_the_lock_of_a_holder_that_is_gone_is_taken_at_once(files, record):
    if record() and holders.started_at(os.getpid()) is None and "start" in record():
        pytest.skip("the system does not tell when a process began")
    lock_file(files, record())
    begun = time.monotonic()
    with files.lock(P("a.json"), timeout=5):
        pass
    assert time.monotonic() - begun < 2
    assert listing(files.root) == []


@pytest.mark.parametrize(
    "record",
    [
        lambda: {"pid": os.getpid(), "ts": time.time() * 1000},
        lambda: {"pid": 1, "ts": time.time() * 1000, "token": "x", "host": "another-machine"},
        lambda: {
            "pid": os.getpid(),
            "ts": 0,
            "token": "x",
            "host": socket.gethostname(),
            "start": holders.started_at(os.getpid()),
        },
    ],
    ids=["reference, alive", "another machine, fresh", "ours, alive and slow"],
)
def test_the_lock_of_a_holder_that_lives_is_waited_for(files, record):
    path = lock_file(files, record())
    with pytest.raises(Locked), files.lock(P("a.json"), timeout=0.05):
        pass
    assert path.exists()


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_lock_file_a_kill_left_empty_is_recovered(files, content):
    path = lock_file(files, content)
    os.utime(path, (time.time() - 5, time.time() - 5))
    with files.lock(P("a.json"), timeout=2):
        pass


def test_a_lock_file_that_was_just_made_is_not_taken_for_a_leftover(files):
    lock_file(files, "")
    with pytest.raises(Locked), files.lock(P("a.json"), timeout=0.05):
        pass


def test_a_lock_that_became_anothers_is_not_deleted(files):
    with files.lock(P("a.json")) as lock:
        lock.file.write_text(json.dumps({"pid": os.getpid(), "ts": time.time() * 1000, "token": "another"}))
        assert not lock.refresh()
    assert json.loads(lock.file.read_text())["token"] == "another"


def test_a_refreshed_lock_has_a_newer_time_and_the_same_owner(files):
    with files.lock(P("a.json")) as lock:
        before = json.loads(lock.file.read_text())
        os.truncate(lock.file, 0)
        lock.file.write_text(json.dumps({**before, "ts": 0}))
        assert lock.refresh()
        after = json.loads(lock.file.read_text())
    assert after["ts"] > 0
    assert after["token"] == before["token"]


def test_many_that_find_one_dead_lock_enter_one_at_a_time(files):
    lock_file(files, {"pid": dead_pid(), "ts": time.time() * 1000})
    roots = [file_root(files.root) for _ in range(6)]  # tables of their own: they meet on the disk only
    inside, most = [], []

    def work(root):
        for _ in range(5):
            with root.lock(P("a.json"), timeout=20):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0)
                inside.pop()

    threads = [threading.Thread(target=work, args=(root,)) for root in roots]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert max(most) == 1
    assert len(most) == 30


async def test_a_waiter_that_is_cancelled_leaves_no_lock_behind(files):
    for _ in range(10):
        async with files.lock(P("a.json")):
            waiter = asyncio.create_task(files.lock(P("a.json")).__aenter__())
            await asyncio.sleep(0)
            waiter.cancel()
            await asyncio.wait([waiter])
    first = asyncio.create_task(files.lock(P("a.json")).__aenter__())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    assert listing(files.root) == []
    async with files.lock(P("a.json"), timeout=1):
        pass


def test_the_lock_of_a_killed_process_is_taken_at_once(files):
    code = (
        "import sys,time\nfrom pathlib import Path,PurePosixPath\nfrom amrita_plugin_memory.amos.ground import FileRoot\n"
        "with FileRoot.open(sys.argv[1]).lock(PurePosixPath('a.json')):\n Path(sys.argv[1],'in').touch(); time.sleep(60)"
    )
    process = python(code, str(files.root))
    try:
        wait_for(files.root / "in")
        with pytest.raises(Locked), files.lock(P("a.json"), timeout=0.05):
            pass
    finally:
        process.kill()
        process.wait()
    with files.lock(P("a.json"), timeout=2):
        pass
