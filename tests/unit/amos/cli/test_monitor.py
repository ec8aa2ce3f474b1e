from __future__ import annotations

from pathlib import Path, PurePosixPath

from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.amos.monitor import Monitor
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import InvalidInput


async def test_a_snapshot_counts_files_tasks_and_versions(tmp_path: Path) -> None:
    files = FileRoot.open(tmp_path, sync=False)
    files.write_json(PurePosixPath("cache_version.txt"), {"a": 3, "b/c": 9, "bad": "x"})
    files.write_text(PurePosixPath("users/a/profile.md"), "12345")
    files.write_text(PurePosixPath("tasks/pending/task_x.json"), "{}")
    files.write_text(PurePosixPath("tasks/pending/other.txt"), "")
    seen = await Monitor(files, ManualClock()).snapshot()
    assert (seen.file_count, seen.cache_version, seen.actors) == (4, 9, 1)
    assert seen.task_queue == {"pending": 1, "running": 0, "completed": 0, "failed": 0}
    assert seen.last_error is None
    assert seen.timestamp == "2026-01-01T00:00:00Z"


async def test_an_odd_version_file_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache_version.txt").write_text("7")
    assert (await Monitor(FileRoot.open(tmp_path, sync=False)).snapshot()).cache_version == 1


async def test_errors_are_logged_by_kind_and_foreign_words_are_not(tmp_path: Path) -> None:
    monitor = Monitor(FileRoot.open(tmp_path, sync=False), ManualClock())
    await monitor.record_error(ValueError("sk-secret"), "search")
    assert (await monitor.snapshot()).last_error == "[2026-01-01T00:00:00Z] search ValueError"
    await monitor.record_error(InvalidInput("名称不能为空"))
    assert (await monitor.snapshot()).last_error == "[2026-01-01T00:00:00Z] InvalidInput: 名称不能为空"
    await monitor.record_event("capability_warning", {"count": 1})
    assert (tmp_path / "logs/system.log").read_text() == '[2026-01-01T00:00:00Z] [capability_warning] {"count": 1}\n'


async def test_health_says_what_is_wrong(tmp_path: Path) -> None:
    files = FileRoot.open(tmp_path, sync=False)
    health = await Monitor(files).health()
    assert not health.ok
    assert "manifest" in health.checks["manifest"]
    files.write_text(PurePosixPath("version.txt"), "2.0.0")
    files.write_text(PurePosixPath("manifest.json"), "{}")
    assert (await Monitor(files).health()).ok
