from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from click.testing import CliRunner, Result

from amrita_plugin_memory.amos import cli
from amrita_plugin_memory.amos.ground import FileRoot


def run(*args: str) -> Result:
    return CliRunner().invoke(cli.amos, list(args))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    assert run("init", str(tmp_path / "root"), "--actor", "u1").exit_code == 0
    files = FileRoot.open(tmp_path / "root")
    files.write_text(PurePosixPath("users/u1/knowledge/geo/hangzhou.md"), "杭州西湖")
    files.write_text(PurePosixPath("users/u1/assets/tools/weather/definition.md"), "查天气")
    return tmp_path / "root"


def test_the_version_is_told() -> None:
    result = run("--version")
    assert (result.exit_code, result.output.split()[0]) == (0, "amos")


def test_the_help_is_chinese_and_names_the_exit_codes() -> None:
    text = run("--help").output
    assert "检索" in text
    assert "退出码" in text
    assert all(name in text for name in ("init", "export", "import", "search", "show", "doctor", "reindex"))


def test_init_makes_a_root_and_leaves_an_old_one_alone(root: Path) -> None:
    (root / "users/u1/profile.md").write_text("画像")
    result = run("init", str(root), "--actor", "u1", "--agent", "a", "--json")
    assert json.loads(result.stdout)["scope"] == "u1/a"
    assert (root / "users/u1/profile.md").read_text() == "画像"
    assert (root / "version.txt").read_text() == "2.0.0"


def test_search_prints_what_it_finds(root: Path) -> None:
    result = run("search", "西湖", "--root", str(root), "--actor", "u1")
    assert "users/u1/knowledge/geo/hangzhou.md" in result.stdout
    found = json.loads(run("search", "天气", "--assets", "--json", "--root", str(root), "--actor", "u1").stdout)
    assert found[0]["source"] == "asset"
    assert json.loads(run("search", "西湖", "--json", "--root", str(root), "--actor", "u2").stdout) == []


def test_show_prints_a_file(root: Path) -> None:
    address = "amos://users/u1/knowledge/geo/hangzhou"
    assert run("show", address, "--root", str(root)).stdout == "杭州西湖\n"
    assert run("show", "amos://knowledge/geo/hangzhou", "--root", str(root), "--actor", "u1").stdout == "杭州西湖\n"
    assert run("show", "users/u1/knowledge/geo/hangzhou.md", "--root", str(root)).stdout == "杭州西湖\n"
    assert "查天气" in run("show", "amos://users/u1/assets/tool/weather", "--root", str(root)).stdout


@pytest.mark.parametrize("what", ["amos://users/u1/knowledge/geo/none", "../../etc/passwd", "amos://bogus"])
def test_show_refuses_what_is_not_there(root: Path, what: str) -> None:
    result = run("show", what, "--root", str(root))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.strip().count("\n") == 0


def test_a_package_goes_out_and_comes_in(root: Path, tmp_path: Path) -> None:
    packed = json.loads(run("export", str(tmp_path / "p.amos"), "--root", str(root), "--actor", "u1", "--json").stdout)
    assert packed["files"] >= 3
    there = ["--root", str(tmp_path / "new")]
    dry = json.loads(run("import", str(tmp_path / "p.amos"), *there, "--dry-run", "--json").stdout)
    assert "users/u1/knowledge/geo/hangzhou.md" in dry["added"]
    result = run("import", str(tmp_path / "p.amos"), *there, "--map", "u1=me")
    assert result.exit_code == 0, result.output
    assert "草稿" in result.stdout
    assert (tmp_path / "new/users/me/knowledge/geo/hangzhou.md").read_text() == "杭州西湖"
    (tmp_path / "new/users/me/knowledge/geo/hangzhou.md").write_text("本地")
    again = run("import", str(tmp_path / "p.amos"), *there, "--map", "u1=me")
    assert again.exit_code == 3
    assert "= users/me/knowledge/geo/hangzhou.md" in again.stdout


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["nonsense"], 2),
        (["search"], 2),
        (["search", "x", "--top-k", "-1"], 2),
        (["search", "x", "--scope", "bogus"], 2),
        (["search", "x", "--actor", "../x"], 2),
        (["import", "p.amos", "--map", "x"], 2),
        (["export", "o.amos", "--agent", "a"], 2),
        (["import", "none.amos"], 1),
        (["export", "o.amos", "--actor", "nobody"], 1),
    ],
)
def test_each_kind_of_failure_has_its_code(root: Path, args: list[str], code: int) -> None:
    extra = [] if args == ["nonsense"] else ["--root", str(root)]
    result = run(*args, *extra)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.output


def test_a_folder_that_is_no_root_is_told_so(tmp_path: Path) -> None:
    result = run("search", "x", "--root", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "amos init" in result.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("package", "code"), [("good.amos", 0), ("bad.amos", 1)])
def test_a_dry_run_and_a_bad_package_leave_no_folder_where_there_was_none(
    root: Path, tmp_path: Path, package: str, code: int
) -> None:
    assert run("export", str(tmp_path / "good.amos"), "--root", str(root)).exit_code == 0
    (tmp_path / "bad.amos").write_bytes(b"junk")
    before = sorted(path.name for path in tmp_path.iterdir())
    typo = ("--root", str(tmp_path / "deep" / "typo"))
    assert run("import", str(tmp_path / package), *typo, "--dry-run").exit_code == code
    assert run("import", str(tmp_path / "bad.amos"), *typo).exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    (tmp_path / "deep").mkdir()
    assert run("import", str(tmp_path / "bad.amos"), *typo).exit_code == 1
    assert not list((tmp_path / "deep").iterdir())


def test_reindex_makes_both_indexes(root: Path) -> None:
    result = json.loads(run("reindex", "--root", str(root), "--json").stdout)
    assert (result["entries"], result["files"]) == (2, 2)


def test_status_tells_numbers_and_health(root: Path) -> None:
    result = run("status", "--root", str(root), "--json")
    seen = json.loads(result.stdout)
    assert seen["health"]["ok"]
    assert seen["snapshot"]["task_queue"] == {"pending": 0, "running": 0, "completed": 0, "failed": 0}
    (root / "manifest.json").write_text("{")
    assert run("status", "--root", str(root)).exit_code == 4


def harm(root: Path) -> None:
    session = root / "users/u1/sessions/s"
    session.mkdir(parents=True)
    good = '{"role": "user", "content": "你好"}\n'
    (session / "messages.jsonl").write_bytes(
        b"\xef\xbb\xbf" + good.encode() + b'{"role": "user", "content": "b\xffd"}\n[1]\n{"role": "us'
    )
    (session / "summary.md").write_bytes("\ufeff摘要".encode())
    (root / "version.txt").write_bytes(b"\xef\xbb\xbf2.0.0\n")
    (root / "cache_version.txt").write_text("7")
    (root / "manifest.json").write_text("{")
    (root / "index.json").write_text("{broken")
    (root / "index.json.lock").write_text(json.dumps({"pid": 999_999_999, "ts": 1}))
    stale = root / "users/u1/profile.md.0123456789ab.tmp"
    stale.write_text("x")
    os.utime(stale, (1, 1))
    (root / "tasks/pending/task_bad.json").write_text("{")
    left = {"type": "t", "status": "running", "attempts": 1, "lease_until": "2000-01-01T00:00:00+00:00"}
    (root / "tasks/running/task_left.json").write_text(json.dumps(left))
    (root / ".amos").mkdir(exist_ok=True)
    (root / ".amos/search.db").write_bytes(b"no database" * 900)
    (root / "users/u1/profile.md").write_text("x")
    (root / "users/u1/profile.md").chmod(0o644)


def codes(result: Result) -> set[str]:
    found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return {finding["code"] for finding in found}


EVERY = {"torn-lines", "bad-text", "version", "cache-version", "manifest", "index", "lock-left", "temp-left",
         "task-corrupt", "task-orphan", "search-index", "modes"}  # fmt: skip


def test_the_doctor_finds_and_mends_what_damage_there_is(root: Path) -> None:
    assert run("doctor", "--root", str(root), "--fix").exit_code == 0
    harm(root)
    before = run("doctor", "--root", str(root), "--json")
    assert before.exit_code == 4
    assert codes(before) == EVERY
    assert (root / "cache_version.txt").read_text() == "7"
    fixed = run("doctor", "--root", str(root), "--fix")
    assert fixed.exit_code == 0, fixed.output
    after = run("doctor", "--root", str(root), "--json")
    assert (after.exit_code, codes(after)) == (0, set())
    lines = (root / "users/u1/sessions/s/messages.jsonl").read_text().splitlines()
    assert [json.loads(line)["content"] for line in lines] == ["你好", "b\ufffdd"]
    assert '{"role": "us' in (root / "logs/damaged-lines.log").read_text()
    assert (root / "index.json.bak").exists()
    assert (root / "tasks/pending/task_left.json").exists()


def test_the_doctor_leaves_to_people_what_only_they_can_decide(root: Path, tmp_path: Path) -> None:
    (root / "users/u1/acl.json").write_text("{")
    (root / "users/u1/link").symlink_to(tmp_path)
    (root / "version.txt").write_text("9.9")
    result = run("doctor", "--root", str(root), "--fix", "--json")
    assert codes(result) >= {"acl", "link", "version"}
    assert result.exit_code in (3, 4)
    assert (root / "users/u1/acl.json").read_text() == "{"


def test_it_runs_as_a_process_with_data_on_stdout_and_complaints_on_stderr(root: Path) -> None:
    code = "from amrita_plugin_memory.amos.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "search", "西湖", "--json", "--actor", "u1"],
        env={**os.environ, "AMOS_ROOT": str(root), "PYTHONIOENCODING": "utf-8"},
        capture_output=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)[0]["type"] == "knowledge"
    assert done.stderr == b""
