from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from amrita_plugin_memory.amos.events import EVENTS, EventBus, EventLog
from amrita_plugin_memory.amos.ground import FileRoot


def logged(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "events/event_log.jsonl").read_text().splitlines()]


async def test_a_listener_has_been_told_when_publish_returns() -> None:
    bus, heard = EventBus(), []

    async def listen(payload: object, meta: dict[str, str]) -> None:
        heard.append((payload, meta["event"]))

    bus.subscribe("turn_added", listen)
    bus.subscribe("turn_added", heard.append)
    await bus.publish("turn_added", {"sessionId": "s"})
    assert heard == [({"sessionId": "s"}, "turn_added"), {"sessionId": "s"}]


async def test_once_hears_once_and_off_ends_it() -> None:
    bus, heard = EventBus(), []
    bus.once("compressed", lambda _: heard.append("once"))
    stop = bus.subscribe("compressed", lambda _: heard.append("each"))
    await bus.publish("compressed")
    await bus.publish("compressed")
    stop()
    await bus.publish("compressed")
    assert heard == ["once", "each", "each"]
    listener = heard.append
    bus.subscribe("x", listener)
    bus.off("x", listener)
    assert bus.listener_count() == 0
    assert not bus.unsubscribe("x", listener)


async def test_a_listener_that_removes_itself_does_not_skip_the_next() -> None:
    bus, heard = EventBus(), []

    def first(_: object) -> None:
        bus.off("x", first)
        heard.append("first")

    bus.subscribe("x", first)
    bus.subscribe("x", lambda _: heard.append("second"))
    await bus.publish("x")
    assert heard == ["first", "second"]


async def test_a_failing_listener_harms_nobody(caplog: Any) -> None:
    bus, heard = EventBus(), []

    def fail(_: object) -> None:
        raise ValueError("no")

    bus.subscribe("x", fail)
    bus.subscribe("x", heard.append)
    await bus.publish("x", 1)
    assert heard == [1]
    assert "listener of event x failed" in caplog.text


async def test_a_star_hears_everything() -> None:
    bus, heard = EventBus(), []
    bus.subscribe("*", lambda _, meta: heard.append(meta["event"]))
    await bus.publish("a")
    await bus.publish("b")
    assert heard == ["a", "b"]


async def test_the_log_has_the_flat_form_and_no_contents(tmp_path: Path) -> None:
    files = FileRoot.open(tmp_path, sync=False)
    bus = EventBus(log=EventLog(files))
    await bus.publish("workflowAdded", {"name": "travel", "content": "机密内容", "size": 12, "actor": "u1"})
    await bus.publish("profileAppended", {"section": "偏好机密", "ts": "forged", "event": "forged"})
    first, second = logged(tmp_path)
    assert first["event"] == "workflowAdded"
    assert (first["name"], first["actor"], first["size"], first["contentLength"]) == ("travel", "u1", 12, 4)
    assert second["event"] == "profileAppended"
    assert second["ts"] != "forged"
    assert "机密" not in (tmp_path / "events/event_log.jsonl").read_text()


async def test_a_payload_that_is_no_json_is_no_error(tmp_path: Path) -> None:
    bus = EventBus(log=EventLog(FileRoot.open(tmp_path, sync=False)))
    await bus.publish("x", {"name": object(), "k": {1, 2}, "path": "\ud800\u2028"})
    await bus.publish("x", object())
    assert [line["event"] for line in logged(tmp_path)] == ["x", "x"]


async def test_the_log_rotates_and_stays_bounded(tmp_path: Path) -> None:
    log = EventLog(FileRoot.open(tmp_path, sync=False), max_bytes=1_000)
    for number in range(200):
        await log.append({"event": "x", "count": number})
    files = sorted(path.name for path in (tmp_path / "events").iterdir() if not path.name.endswith(".lock"))
    assert files == ["event_log.jsonl", "event_log.jsonl.1", "event_log.jsonl.2", "event_log.jsonl.3"]
    assert all(path.stat().st_size <= 1_000 for path in (tmp_path / "events").iterdir())
    assert (await log.read(3))[-1]["count"] == 199


async def test_a_disk_that_refuses_does_not_stop_the_caller(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("a file where the folder should be")
    await EventBus(log=EventLog(FileRoot.open(tmp_path, sync=False))).publish("x")


def test_the_names_of_the_protocol_are_known() -> None:
    assert {"turn_added", "profileAppended", "workflowAdded", "assetCreated", "toolCompiled", "compressed"} <= EVENTS


async def test_the_snake_case_names_of_the_protocol_are_other_words_for_ours() -> None:
    bus, heard = EventBus(), []
    stop = bus.subscribe("workflow_updated", lambda _, meta: heard.append(meta["event"]))
    bus.once("tool_compiled", lambda _, meta: heard.append(meta["event"]))
    bus.subscribe("toolDeleted", lambda _, meta: heard.append(meta["event"]))
    for event in ("workflowUpdated", "toolCompiled", "toolCompiled", "tool_deleted"):
        await bus.publish(event)
    assert heard == ["workflowUpdated", "toolCompiled", "toolDeleted"]
    assert bus.listener_count("workflow_updated") == bus.listener_count("workflowUpdated") == 1
    stop()
    bus.off("tool_deleted")
    assert bus.listener_count() == 0


async def test_a_name_nobody_knows_and_those_with_an_underscore_of_their_own_stay_as_they_are() -> None:
    bus, heard = EventBus(), []
    for event in ("turn_added", "tool_executed", "my_own_event"):
        bus.subscribe(event, lambda _, meta: heard.append(meta["event"]))
        await bus.publish(event)
    assert heard == ["turn_added", "tool_executed", "my_own_event"]
    assert bus.unsubscribe("my_own_event", print) is False
