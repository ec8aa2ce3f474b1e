from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from amrita_plugin_memory.amos.errors import TaskError
from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.amos.tasks import Task, TaskManager, TaskManagerOptions, record
from amrita_plugin_memory.kernel.clock import ManualClock

REFERENCE_KEYS = [
    "task_id", "type", "payload", "priority", "status", "created_at", "started_at", "completed_at", "attempts",
    "max_attempts", "timeout", "worker_id", "result", "error",
]  # fmt: skip


class Shop:
    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.files = FileRoot.open(folder, sync=False)
        self.clock = ManualClock()
        self.told: list[tuple[str, dict[str, Any]]] = []

    def manager(self, **options: Any) -> TaskManager:
        return TaskManager(self.files, TaskManagerOptions(**options), clock=self.clock, publish=self.hear)

    async def hear(self, event: str, payload: Any) -> None:
        self.told.append((event, dict(payload)))

    def put(self, status: str, task_id: str, text: str) -> Path:
        path = self.root / "tasks" / status / f"task_{task_id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, status: str, task_id: str) -> dict[str, Any]:
        return json.loads((self.root / "tasks" / status / f"task_{task_id}.json").read_text())


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


async def test_a_task_runs_and_its_file_has_the_reference_keys(shop: Shop) -> None:
    manager = shop.manager()
    manager.register_handler("reflect", lambda task: {"seen": task.payload["x"]})
    task_id = await manager.submit_task("reflect", {"x": 1}, 5)
    assert list(shop.load("pending", task_id))[:14] == REFERENCE_KEYS
    assert await manager.run_once() == 1
    done = shop.load("completed", task_id)
    assert list(done)[:14] == REFERENCE_KEYS
    assert (done["status"], done["result"], done["attempts"], done["error"]) == ("completed", {"seen": 1}, 1, None)
    assert [event for event, _ in shop.told] == ["taskSubmitted", "taskCompleted"]


async def test_who_gave_a_task_stands_in_its_file_to_the_end(shop: Shop) -> None:
    manager = shop.manager()
    manager.register_handler("reflect", lambda task: task.payload)
    given = await manager.submit_task("reflect", {"x": 1}, actor="u1")
    nobodys = await manager.submit_task("reflect")
    assert await manager.run_once() == 2
    done = shop.load("completed", given)
    assert (done["actor"], done["result"]) == ("u1", {"x": 1})
    assert "actor" not in shop.load("completed", nobodys)


async def test_the_highest_priority_goes_first_then_the_oldest(shop: Shop) -> None:
    manager, order = shop.manager(max_workers=1), []
    manager.register_handler("t", lambda task: order.append(task.payload["n"]))
    for name, priority in (("a", 1), ("b", 9), ("c", 1), ("d", 5)):
        await manager.submit_task("t", {"n": name}, priority)
    while await manager.run_once():
        pass
    assert order == ["b", "d", "a", "c"]


async def test_a_failing_task_is_tried_again_later_and_later_then_given_up(shop: Shop) -> None:
    manager, tries = shop.manager(), []

    def fail(task: Task) -> None:
        tries.append(shop.clock.monotonic())
        raise ValueError("boom")

    manager.register_handler("t", fail)
    task_id = await manager.submit_task("t", retry_wait=10)
    assert await manager.run_once() == 1
    assert await manager.run_once() == 0
    for _ in range(60):
        shop.clock.advance(seconds=1)
        await manager.run_once()
    assert tries == [0, 10, 30]
    failed = shop.load("failed", task_id)
    assert (failed["attempts"], failed["error"], failed["status"]) == (3, "boom", "failed")
    assert shop.told[-1][0] == "taskFailed"


async def test_a_time_limit_holds_for_coroutines(shop: Shop) -> None:
    manager = shop.manager()
    ended = []

    async def forever(_: Task) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    manager.register_handler("t", forever)
    task_id = await manager.submit_task("t", timeout=20, max_attempts=1)
    await manager.run_once()
    assert ended == [True]
    assert "20 毫秒" in shop.load("failed", task_id)["error"]


async def test_a_time_limit_holds_for_threads_and_they_are_not_run_twice_at_once(shop: Shop) -> None:
    manager, gate, starts = shop.manager(), threading.Event(), []

    def block(_: Task) -> None:
        starts.append(1)
        gate.wait(30)

    manager.register_handler("t", block)
    task_id = await manager.submit_task("t", timeout=20, max_attempts=3)
    await manager.run_once()
    shop.clock.advance(seconds=1000)
    await manager.run_once()
    gate.set()
    assert starts == [1]
    assert shop.load("failed", task_id)["status"] == "failed"


async def test_tasks_run_at_the_same_time_up_to_the_limit(shop: Shop) -> None:
    manager, together = shop.manager(max_workers=3), asyncio.Barrier(3)

    async def meet(_: Task) -> None:
        async with asyncio.timeout(10):
            await together.wait()

    manager.register_handler("t", meet)
    for _ in range(4):
        await manager.submit_task("t")
    assert await manager.run_once() == 3
    assert (await manager.counts())["completed"] == 3
    assert (await manager.counts())["pending"] == 1


async def test_plain_functions_run_at_the_same_time_too(shop: Shop) -> None:
    manager, together = shop.manager(max_workers=2), threading.Barrier(2)
    manager.register_handler("t", lambda _: together.wait(10) >= 0)
    for _ in range(2):
        await manager.submit_task("t")
    await manager.run_once()
    assert (await manager.counts())["completed"] == 2


async def test_a_delayed_task_waits_for_its_time(shop: Shop) -> None:
    manager = shop.manager()
    manager.register_handler("t", lambda _: None)
    await manager.submit_task("t", delay=60)
    assert await manager.run_once() == 0
    shop.clock.advance(seconds=61)
    assert await manager.run_once() == 1


async def test_two_managers_on_one_root_run_each_task_once(shop: Shop) -> None:
    ran: list[str] = []
    managers = [shop.manager(max_workers=3) for _ in range(3)]
    for manager in managers:
        manager.register_handler("t", lambda task: ran.append(task.task_id))
    ids = [await managers[0].submit_task("t") for _ in range(12)]
    while sum(await asyncio.gather(*(manager.run_once() for manager in managers))):
        pass
    assert sorted(ran) == sorted(ids)


async def test_a_result_that_is_no_json_is_kept_as_its_repr_and_not_done_again(shop: Shop) -> None:
    manager, ran = shop.manager(), []

    def handler(_: Task) -> object:
        ran.append(1)
        return {1, 2}

    manager.register_handler("t", handler)
    task_id = await manager.submit_task("t")
    await manager.run_once()
    shop.clock.advance(seconds=1000)
    await manager.run_once()
    assert ran == [1]
    assert shop.load("completed", task_id)["result"] == {"repr": "{1, 2}"}


async def test_a_waiting_task_can_be_cancelled(shop: Shop) -> None:
    manager = shop.manager()
    manager.register_handler("t", lambda _: None)
    task_id = await manager.submit_task("t")
    assert await manager.cancel(task_id)
    assert await manager.run_once() == 0
    assert shop.load("failed", task_id)["error"] == "已取消"
    assert not await manager.cancel(task_id)
    assert not await manager.cancel("../../x")


async def test_a_task_at_work_can_be_cancelled(shop: Shop) -> None:
    manager, begun = shop.manager(), asyncio.Event()

    async def work(_: Task) -> None:
        begun.set()
        await asyncio.Event().wait()

    manager.register_handler("t", work)
    task_id = await manager.submit_task("t", timeout=0)
    running = asyncio.create_task(manager.run_once())
    await begun.wait()
    assert await manager.cancel(task_id)
    await running
    assert shop.load("failed", task_id)["error"] == "已取消"


async def test_what_a_dead_process_left_running_is_done_again(shop: Shop) -> None:
    manager, ran = shop.manager(), []
    manager.register_handler("t", lambda task: ran.append(task.task_id))
    left = {"task_id": "dead", "type": "t", "payload": {}, "priority": 1, "status": "running", "attempts": 1,
            "max_attempts": 3, "worker_id": "w", "lease_until": "2999-01-01T00:00:00+00:00",
            "owner": {"pid": 999_999_999, "host": __import__("socket").gethostname(), "start": 1}}  # fmt: skip
    shop.put("running", "dead", json.dumps(left))
    await manager.recover()
    shop.clock.advance(seconds=10)
    await manager.run_once()
    assert ran == ["dead"]


async def test_a_lease_that_ran_out_is_taken_over_and_the_late_holder_changes_nothing(shop: Shop) -> None:
    slow, quick = shop.manager(lease=30), shop.manager(lease=30)
    begun, go = asyncio.Event(), asyncio.Event()

    async def hang(_: Task) -> str:
        begun.set()
        await go.wait()
        return "late"

    slow.register_handler("t", hang)
    quick.register_handler("t", lambda _: "quick")
    task_id = await slow.submit_task("t", timeout=0)
    running = asyncio.create_task(slow.run_once())
    await begun.wait()
    assert await quick.recover() == 0
    shop.clock.advance(seconds=31)
    assert await quick.recover() == 1
    shop.clock.advance(seconds=31)
    assert await quick.run_once() == 1
    go.set()
    await running
    assert shop.load("completed", task_id)["result"] == "quick"
    assert sum((await quick.counts()).values()) == 1


async def test_a_task_that_died_on_each_attempt_is_given_up(shop: Shop) -> None:
    left = {"type": "t", "status": "running", "attempts": 3, "max_attempts": 3, "worker_id": "w",
            "lease_until": "2000-01-01T00:00:00+00:00"}  # fmt: skip
    shop.put("running", "x", json.dumps(left))
    await shop.manager().recover()
    assert shop.load("failed", "x")["status"] == "failed"


async def test_an_outcome_that_was_written_but_not_moved_is_not_done_again(shop: Shop) -> None:
    manager, ran = shop.manager(), []
    manager.register_handler("t", lambda _: ran.append(1))
    shop.put("running", "x", json.dumps({"type": "t", "status": "completed", "attempts": 1, "result": 7}))
    await manager.run_once()
    assert ran == []
    assert shop.load("completed", "x")["result"] == 7


async def test_a_corrupt_file_is_put_aside_and_blocks_nobody(shop: Shop) -> None:
    manager, ran = shop.manager(), []
    manager.register_handler("t", lambda _: ran.append(1))
    shop.put("pending", "bad", "{")
    shop.put("pending", "list", "[]")
    await manager.submit_task("t")
    await manager.run_once()
    assert ran == [1]
    assert (shop.root / "tasks/corrupt/task_bad.json").exists()
    assert await manager.list_pending() == []


async def test_a_file_without_attempts_and_priority_is_run(shop: Shop) -> None:
    manager, ran = shop.manager(), []
    manager.register_handler("t", lambda task: ran.append(task.task_id))
    shop.put("pending", "bare", '{"type": "t", "priority": null, "vendor": 1}')
    await manager.run_once()
    assert ran == ["bare"]
    assert shop.load("completed", "bare")["vendor"] == 1


async def test_a_type_without_handler_waits(shop: Shop) -> None:
    manager = shop.manager()
    await manager.submit_task("nobody")
    manager.register_handler("t", lambda _: None)
    assert await manager.run_once() == 0
    assert len(await manager.list_pending()) == 1


async def test_a_started_manager_works_until_it_is_stopped(shop: Shop) -> None:
    manager, done = shop.manager(poll_interval_ms=10_000), asyncio.Event()

    async def work(_: Task) -> None:
        done.set()

    manager.register_handler("t", work)
    manager.start()
    manager.start()
    await manager.submit_task("t")
    async with asyncio.timeout(10):
        await done.wait()
    await manager.stop()
    assert (await manager.counts())["completed"] == 1


async def test_a_stopped_manager_gives_back_what_it_had_not_finished(shop: Shop) -> None:
    manager, begun = shop.manager(), asyncio.Event()

    async def work(_: Task) -> None:
        begun.set()
        await asyncio.Event().wait()

    manager.register_handler("t", work)
    manager.start()
    task_id = await manager.submit_task("t", timeout=0)
    await begun.wait()
    await manager.stop(grace=0)
    given_back = shop.load("pending", task_id)
    assert (given_back["attempts"], given_back["status"]) == (0, "pending")


async def test_old_results_are_thrown_away(shop: Shop) -> None:
    manager = shop.manager(keep_finished=3, lease=0.0)
    manager.register_handler("t", lambda _: None)
    for _ in range(8):
        await manager.submit_task("t")
        await manager.run_once()
    await manager.run_once()
    assert (await manager.counts())["completed"] == 3


async def test_unusable_tasks_are_refused(shop: Shop) -> None:
    manager = shop.manager()
    with pytest.raises(TaskError):
        await manager.submit_task("")
    with pytest.raises(TaskError):
        await manager.submit_task("t", {"x": object()})
    with pytest.raises(TaskError):
        await manager.submit_task("t", {"x": "y" * 100_000})


def test_a_task_file_survives_reading_and_writing() -> None:
    task = Task("abc", "t", {"a": [1, "二"]}, priority=2.5, extra={"vendor": {"x": 1}}, run_at="2026-01-01T00:00:00Z")
    assert record.decode(record.encode(task), "abc") == task
