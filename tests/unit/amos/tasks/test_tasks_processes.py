from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.amos.tasks import TaskManager

WORKER = textwrap.dedent(
    """
    import asyncio, os, sys
    from amrita_plugin_memory.amos.ground import FileRoot
    from amrita_plugin_memory.amos.tasks import TaskManager, TaskManagerOptions

    root, hang = sys.argv[1], sys.argv[2] == "hang"

    async def main():
        manager = TaskManager(FileRoot.open(root, sync=False), TaskManagerOptions(max_workers=2, lease=30))

        async def handler(task):
            fd = os.open(os.path.join(root, "ran.txt"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(fd, (task.task_id + "\\n").encode())
            os.close(fd)
            if hang:
                print("at work", flush=True)
                await asyncio.Event().wait()

        manager.register_handler("t", handler)
        print("ready", flush=True)
        sys.stdin.readline()
        while await manager.run_once():
            pass

    asyncio.run(main())
    """
)


def start(root: Path, kind: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(root), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def ran(root: Path) -> list[str]:
    return (root / "ran.txt").read_text().split()


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_managers_of_several_processes_run_each_task_once(tmp_path: Path) -> None:
    manager = TaskManager(FileRoot.open(tmp_path, sync=False))
    ids = [await manager.submit_task("t", timeout=0) for _ in range(24)]
    processes = [start(tmp_path, "quick") for _ in range(3)]
    for process in processes:
        go(process)
    for process in processes:
        process.communicate(timeout=50)
        assert process.returncode == 0
    assert sorted(ran(tmp_path)) == sorted(ids)
    assert (await manager.counts())["completed"] == 24


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_what_a_killed_process_was_doing_is_taken_over_at_once(tmp_path: Path) -> None:
    manager = TaskManager(FileRoot.open(tmp_path, sync=False))
    task_id = await manager.submit_task("t", timeout=0, retry_wait=0)
    process = start(tmp_path, "hang")
    go(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    done: list[str] = []
    manager.register_handler("t", lambda task: done.append(task.task_id))
    assert await manager.run_once() == 1
    assert done == [task_id]
    stored = json.loads((tmp_path / f"tasks/completed/task_{task_id}.json").read_text())
    assert stored["attempts"] == 2
