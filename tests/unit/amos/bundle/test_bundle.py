from __future__ import annotations

import errno
import io
import json
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amrita_plugin_memory.amos import cli
from amrita_plugin_memory.amos.bundle import (
    ImportOptions,
    ImportReport,
    Limits,
    PortabilityManager,
    export,
    merge,
    prefix,
)
from amrita_plugin_memory.amos.errors import BundleError, ProtocolVersionError
from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.amos.memory import Index
from amrita_plugin_memory.kernel.errors import InvalidName, Locked

MANIFEST = {"amos_version": "2.0", "name": "t", "description": None, "author": "system", "model": None, "env_vars": [],
            "required_capabilities": {}, "version": "2.0.0"}  # fmt: skip


class Place:
    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.files = FileRoot.open(folder, sync=False)
        self.index = Index(self.files)
        self.bundles = PortabilityManager(self.files, self.index)

    def put(self, path: str, data: str | dict[str, Any]) -> None:
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        self.files.write_text(PurePosixPath(path), text)

    def get(self, path: str) -> str | None:
        return self.files.read_text(PurePosixPath(path))

    def load(self, path: str) -> Any:
        return json.loads(self.get(path) or "null")

    def paths(self) -> list[str]:
        return sorted(str(path) for path in self.files.walk(PurePosixPath()))


@pytest.fixture
def home(tmp_path: Path) -> Place:
    here = Place(tmp_path / "home")
    here.put("version.txt", "2.0.0")
    here.put("manifest.json", MANIFEST)
    here.put("cache_version.txt", {"u1": 4, "u1/a": 2, "u1/b": 3, "u12": 9, "u2": 7})
    here.put("shared/soul.md", "共享人格")
    here.put("shared/assets/tools/st/definition.md", "tool")
    here.put("shared/assets/tools/st/metadata.json", {"author": "u2", "status": "active"})
    here.put("users/u1/profile.md", "# 画像")
    here.put("users/u1/acl.json", {"owner": "u1", "entries": [{"resource": "x", "allow": ["read"], "actors": ["u1", "u2"]}],
                                   "default": {"read": ["owner", "u2"], "write": [], "execute": []}})  # fmt: skip
    here.put("users/u1/knowledge/geo/hangzhou.md", "西湖")
    here.put("users/u1/assets/tools/weather/definition.md", "天气")
    here.put("users/u1/assets/tools/weather/code.py", "def run(params): return 1\n")
    here.put("users/u1/assets/tools/weather/metadata.json", {"status": "active", "author": "u1", "version": 2})
    here.put("users/u1/sessions/s/messages.jsonl", '{"role": "user", "content": "你好"}\n')
    here.put("users/u1/sessions/s/summary.md", "摘要")
    here.put("users/u1/agents/a/soul.md", "A")
    here.put("users/u1/agents/a/sessions/s/messages.jsonl", '{"role": "user", "content": "a"}\n')
    here.put("users/u1/agents/b/soul.md", "B")
    here.put("users/u2/profile.md", "u2 的画像")
    here.put("tasks/pending/task_aa.json", {"type": "t", "payload": {"actor": "u1"}, "status": "pending"})
    here.put("tasks/running/task_bb.json", {"type": "t", "payload": {"actor": "u2"}, "status": "running"})
    here.put("acl/global.acl.json", {"owner": "system", "entries": [], "default": {}})
    here.put("logs/system.log", "secret")
    here.index.rebuild()
    here.index.tag(PurePosixPath("users/u1/knowledge/geo/hangzhou.md"), "城市")
    return here


@pytest.fixture
def away(tmp_path: Path) -> Place:
    return Place(tmp_path / "away")


def members(package: Path) -> dict[str, bytes]:
    with tarfile.open(package) as archive:
        return {
            member.name.removeprefix("./"): (archive.extractfile(member) or io.BytesIO()).read()
            for member in archive
            if member.isfile()
        }


def package(path: Path, files: dict[str, str | bytes], edit: Callable[[tarfile.TarFile], None] | None = None) -> Path:
    base: dict[str, str | bytes] = {"version.txt": "2.0.0", "manifest.json": json.dumps(MANIFEST)}
    with tarfile.open(path, "w:gz") as archive:
        for name, data in {**base, **files}.items():
            raw = data.encode() if isinstance(data, str) else data
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
        if edit is not None:
            edit(archive)
    return path


async def test_a_package_of_one_user_tells_no_other_users_id(home: Place, tmp_path: Path) -> None:
    await home.bundles.export(tmp_path / "p.amos", "u1")
    found = members(tmp_path / "p.amos")
    assert "users/u1/profile.md" in found
    assert not any(name.startswith("users/u2") for name in found)
    assert not any(b"u2" in data or b"u12" in data for data in found.values())
    assert json.loads(found["cache_version.txt"]) == {"u1": 4, "u1/a": 2, "u1/b": 3}
    assert "tasks/pending/task_aa.json" in found
    assert not any(name.startswith(("logs", "acl", "events")) for name in found)


async def test_a_package_of_one_user_does_not_name_the_author_of_the_root(home: Place, tmp_path: Path) -> None:
    home.put("manifest.json", {**MANIFEST, "author": "u2"})
    await home.bundles.export(tmp_path / "p.amos", "u1")
    assert json.loads(members(tmp_path / "p.amos")["manifest.json"]) == MANIFEST
    await home.bundles.export(tmp_path / "whole.amos")
    assert json.loads(members(tmp_path / "whole.amos")["manifest.json"])["author"] == "u2"


async def test_a_package_of_one_agent_holds_no_other_agent_and_no_session_of_the_user(
    home: Place, tmp_path: Path
) -> None:
    await home.bundles.export(tmp_path / "p.amos", "u1", "a")
    found = members(tmp_path / "p.amos")
    assert {"users/u1/agents/a/soul.md", "users/u1/agents/a/sessions/s/messages.jsonl", "users/u1/profile.md"} <= set(
        found
    )
    assert not any("agents/b" in name or name.startswith("users/u1/sessions") for name in found)
    assert json.loads(found["cache_version.txt"]) == {"u1": 4, "u1/a": 2}


async def test_a_package_of_the_whole_root_holds_everybody(home: Place, tmp_path: Path) -> None:
    result = await home.bundles.export(tmp_path / "p.amos")
    found = members(tmp_path / "p.amos")
    assert {"users/u1/profile.md", "users/u2/profile.md", "acl/global.acl.json", "tasks/running/task_bb.json"} <= set(
        found
    )
    assert result.files == len(found) - 1
    assert (tmp_path / "p.amos").stat().st_mode & 0o077 == 0


async def test_leftovers_links_and_the_search_index_stay_at_home(home: Place, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("外面的文件")
    (home.root / "users/u1/link.md").symlink_to(tmp_path / "secret")
    (home.root / "users/u1/linked").symlink_to(tmp_path)
    (home.root / "users/u1/profile.md.0123456789ab.tmp").write_text("x")
    (home.root / "users/u1/profile.md.lock").write_text("x")
    (home.root / ".amos").mkdir(exist_ok=True)
    (home.root / ".amos/search.db").write_text("x")
    os.mkfifo(home.root / "users/u1/pipe.md")
    await home.bundles.export(tmp_path / "p.amos")
    found = members(tmp_path / "p.amos")
    assert not any(".tmp" in n or ".lock" in n or "link" in n or ".amos" in n or "pipe" in n for n in found)


async def test_an_unknown_user_is_not_exported(home: Place, tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        await home.bundles.export(tmp_path / "p.amos", "nobody")
    with pytest.raises(InvalidName):
        await home.bundles.export(tmp_path / "p.amos", "../u1")
    assert not (tmp_path / "p.amos").exists()


async def test_an_export_comes_back_whole(home: Place, away: Place, tmp_path: Path) -> None:
    await home.bundles.export(tmp_path / "p.amos")
    report = await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(trust_acl=True, trust_tools=True))
    assert report.verified
    for path in home.paths():
        if path.startswith(("users/", "shared/")):
            assert away.get(path) == home.get(path), path
    assert away.index.tags_of("users/u1/knowledge/geo/hangzhou.md") == ("城市",)
    assert away.load("cache_version.txt") == {"u1": 4, "u1/a": 2, "u1/b": 3, "u2": 7}  # u12 has no files
    assert away.load("tasks/pending/task_bb.json")["status"] == "pending"
    assert away.get("version.txt") == "2.0.0"
    assert not [p for p in away.root.parent.iterdir() if "import" in p.name]


async def test_a_dry_run_tells_the_difference_and_changes_nothing(home: Place, away: Place, tmp_path: Path) -> None:
    away.put("users/u1/profile.md", "别的画像")
    away.put("users/u1/knowledge/geo/hangzhou.md", "西湖")
    before = {path: away.get(path) for path in away.paths()}
    await home.bundles.export(tmp_path / "p.amos", "u1")
    report = await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(dry_run=True, overwrite=True))
    assert "users/u1/profile.md" in report.replaced
    assert "users/u1/knowledge/geo/hangzhou.md" in report.same
    assert "users/u1/agents/a/soul.md" in report.added
    assert {path: away.get(path) for path in away.paths()} == before


@pytest.mark.parametrize("overwrite", [False, True])
async def test_overwrite_is_honoured_for_every_file(home: Place, away: Place, tmp_path: Path, overwrite: bool) -> None:
    theirs = ("users/u1/profile.md", "shared/soul.md", "users/u1/sessions/s/messages.jsonl", "users/u1/agents/a/soul.md",
              "users/u1/assets/tools/weather/code.py")  # fmt: skip
    for path in theirs:
        away.put(path, "本地")
    await home.bundles.export(tmp_path / "p.amos", "u1")
    report = await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(overwrite=overwrite))
    for path in theirs:
        assert (away.get(path) == "本地") is not overwrite, path
        assert path in (report.replaced if overwrite else report.kept)


async def test_a_kept_tool_gets_no_file_of_the_package(home: Place, away: Place, tmp_path: Path) -> None:
    away.put("users/u1/assets/tools/weather/definition.md", "本地")
    await home.bundles.export(tmp_path / "p.amos", "u1")
    await away.bundles.import_bundle(tmp_path / "p.amos")
    assert away.get("users/u1/assets/tools/weather/code.py") is None


async def test_tools_arrive_as_drafts_and_access_lists_not_at_all(home: Place, away: Place, tmp_path: Path) -> None:
    await home.bundles.export(tmp_path / "p.amos")
    report = await away.bundles.import_bundle(tmp_path / "p.amos")
    assert away.load("users/u1/assets/tools/weather/metadata.json")["status"] == "draft"
    assert "users/u1/assets/tools/weather" in report.drafts
    assert away.get("users/u1/acl.json") is None
    assert away.get("acl/global.acl.json") is None
    assert report.skipped["users/u1/acl.json"]


async def test_a_tool_without_metadata_is_a_draft_too(away: Place, tmp_path: Path) -> None:
    await away.bundles.import_bundle(package(tmp_path / "p.amos", {"users/u1/assets/tools/t/code.py": "1"}))
    assert away.load("users/u1/assets/tools/t/metadata.json")["status"] == "draft"


async def test_a_replaced_tool_is_a_draft(away: Place, tmp_path: Path) -> None:
    away.put("users/u1/assets/tools/t/code.py", "good")
    away.put("users/u1/assets/tools/t/metadata.json", {"status": "active"})
    sent = package(tmp_path / "p.amos", {"users/u1/assets/tools/t/code.py": "evil"})
    await away.bundles.import_bundle(sent, ImportOptions(overwrite=True))
    assert away.load("users/u1/assets/tools/t/metadata.json")["status"] == "draft"


async def test_users_are_renamed_inside_and_out(home: Place, away: Place, tmp_path: Path) -> None:
    await home.bundles.export(tmp_path / "p.amos", "u1")
    options = ImportOptions(actor_mapping={"u1": "new"}, trust_acl=True)
    report = await away.bundles.import_bundle(tmp_path / "p.amos", options)
    assert report.actors == ("new",)
    assert not (away.root / "users/u1").exists()
    assert away.load("users/new/acl.json")["owner"] == "new"
    assert away.load("users/new/acl.json")["entries"][0]["actors"] == ["new"]
    assert away.load("users/new/assets/tools/weather/metadata.json")["author"] == "new"
    assert away.index.tags_of("users/new/knowledge/geo/hangzhou.md") == ("城市",)
    assert away.load("cache_version.txt") == {"new": 4, "new/a": 2, "new/b": 3}
    assert away.load("tasks/pending/task_aa.json")["payload"] == {"actor": "new"}


async def test_tags_of_files_without_an_entry_of_their_own_travel_too(home: Place, away: Place, tmp_path: Path) -> None:
    tagged = ["users/u1/profile.md", "users/u1/sessions/s/messages.jsonl", "users/u1/assets/tools/weather/code.py",
              "users/u1/knowledge/geo/hangzhou.md", "shared/soul.md"]  # fmt: skip
    for path in tagged:
        home.index.tag(PurePosixPath(path), "要")
    away.put("users/u1/profile.md", "本地")
    away.put("shared/soul.md", "共享人格")  # the same
    await home.bundles.export(tmp_path / "p.amos", "u1")
    await away.bundles.import_bundle(tmp_path / "p.amos")
    assert away.index.tagged("要") == sorted(set(tagged) - {"users/u1/profile.md"})  # which stayed as it was
    await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(overwrite=True))
    away.index.rebuild()
    assert away.index.tagged("要") == sorted(tagged)


@pytest.mark.parametrize("mapping", [{"u1": "../../MAPPED"}, {"u1": "a/b"}, {"u1": ""}, {"u1": "x", "u2": "X"}])
async def test_a_mapping_that_leaves_its_place_is_refused(
    home: Place, away: Place, tmp_path: Path, mapping: Any
) -> None:
    await home.bundles.export(tmp_path / "p.amos")
    with pytest.raises((InvalidName, BundleError)):
        await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(actor_mapping=mapping))
    assert away.paths() == []


async def test_a_strangers_manifest_grants_nothing(away: Place, tmp_path: Path) -> None:
    evil = {**MANIFEST, "author": "u1", "env_vars": ["SECRET_KEY"], "name": "evil"}
    sent = package(tmp_path / "p.amos", {"manifest.json": json.dumps(evil), "users/u1/profile.md": "x"})
    report = await away.bundles.import_bundle(sent, ImportOptions(overwrite=True))
    assert report.missing_env_vars == ("SECRET_KEY",)
    stored = away.load("manifest.json")
    assert (stored["author"], stored["env_vars"], stored["name"]) == ("system", [], "evil")


async def test_cache_versions_grow_when_the_prefix_is_replaced(home: Place, away: Place, tmp_path: Path) -> None:
    away.put("cache_version.txt", {"u1": 10, "other": 3})
    away.put("users/u1/profile.md", "本地")
    await home.bundles.export(tmp_path / "p.amos", "u1")
    await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(overwrite=True))
    found = away.load("cache_version.txt")
    assert found["u1"] == 11
    assert found["other"] == 4


async def test_an_import_of_what_no_prompt_begins_with_moves_no_version(away: Place, tmp_path: Path) -> None:
    away.put("cache_version.txt", {"u1": 2})
    away.put("users/u1/profile.md", "本地")
    sent = package(tmp_path / "p.amos", {"users/u1/knowledge/d/e.md": "x", "cache_version.txt": '{"u1": 5, "u1/a": 4}'})
    await away.bundles.import_bundle(sent)
    assert away.load("cache_version.txt") == {"u1": 2}


async def test_a_replaced_profile_moves_the_versions_of_all_who_read_it(away: Place, tmp_path: Path) -> None:
    away.put("cache_version.txt", {"u1": 2, "u2": 2})
    away.put("users/u1/profile.md", "本地")
    away.put("users/u1/agents/mine/soul.md", "只在本地")
    sent = package(tmp_path / "p.amos", {"users/u1/profile.md": "新", "users/u1/agents/theirs/soul.md": "远方"})
    await away.bundles.import_bundle(sent, ImportOptions(overwrite=True))
    assert away.load("cache_version.txt") == {"u1": 3, "u1/mine": 2, "u1/theirs": 2, "u2": 2}


async def test_a_shared_soul_moves_the_versions_of_those_who_speak_with_it(away: Place, tmp_path: Path) -> None:
    away.put("users/u1/profile.md", "没有版本")
    away.put("users/u2/soul.md", "自己的")
    away.put("users/u3/agents/a/soul.md", "自己的")
    await away.bundles.import_bundle(package(tmp_path / "p.amos", {"shared/soul.md": "共享"}))
    assert away.load("cache_version.txt") == {"u1": 2, "u3": 2}


async def test_a_summary_moves_the_version_of_its_own_scope_only(away: Place, tmp_path: Path) -> None:
    away.put("users/u1/agents/a/soul.md", "A")
    sent = {"users/u1/sessions/s/summary.md": "摘要", "users/u1/agents/b/sessions/s/messages.jsonl": "{}\n"}
    await away.bundles.import_bundle(package(tmp_path / "p.amos", dict(sent)))
    assert away.load("cache_version.txt") == {"u1": 2}


HOSTILE = ["../evil", "/abs", "users/../../evil", "a\\..\\evil", "C:/evil", "users/u1/\x07.md", "users/u1/con./x",
           "users/u1/" + "x" * 256, "/".join("d" * 20), "users//x.md"]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_name_that_tries_to_leave_refuses_the_package(away: Place, tmp_path: Path, name: str) -> None:
    sent = package(tmp_path / "p.amos", {"users/u1/profile.md": "x", name: "evil"})
    with pytest.raises(BundleError):
        await away.bundles.import_bundle(sent, ImportOptions(overwrite=True))
    assert away.paths() == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["away", "p.amos"]


async def test_links_are_left_out_and_what_goes_through_them_lands_inside(away: Place, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "secret").write_text("secret")

    def add_links(archive: tarfile.TarFile) -> None:
        for name, target, kind in (
            ("users/u9/lnk", str(tmp_path / "outside"), tarfile.SYMTYPE),
            ("users/u8/profile.md", str(tmp_path / "secret"), tarfile.SYMTYPE),
            ("users/u7/profile.md", str(tmp_path / "secret"), tarfile.LNKTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
        info = tarfile.TarInfo("users/u9/lnk/f.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"pwnd"))

    report = await away.bundles.import_bundle(package(tmp_path / "p.amos", {}, add_links))
    assert list((tmp_path / "outside").iterdir()) == []
    assert away.get("users/u9/lnk/f.txt") == "pwnd"
    assert not (away.root / "users/u8").exists()
    assert set(report.skipped) == {"users/u9/lnk", "users/u8/profile.md", "users/u7/profile.md"}


async def test_a_link_in_the_root_is_not_written_through(away: Place, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (away.root / "users").mkdir()
    (away.root / "users/u1").symlink_to(tmp_path / "outside")
    with pytest.raises(BundleError):
        await away.bundles.import_bundle(package(tmp_path / "p.amos", {"users/u1/profile.md": "x"}))
    assert list((tmp_path / "outside").iterdir()) == []


async def test_names_that_would_fall_together_are_refused(away: Place, tmp_path: Path) -> None:
    sent = package(tmp_path / "p.amos", {"users/u1/knowledge/d/K.md": "1", "users/u1/knowledge/D/k.md": "2"})
    with pytest.raises(BundleError, match="两次"):
        await away.bundles.import_bundle(sent)


@pytest.mark.parametrize("actor", ["bad!name", "CON", "-ok", " lead"])
async def test_unusable_names_are_left_out_with_the_reason(away: Place, tmp_path: Path, actor: str) -> None:
    report = await away.bundles.import_bundle(package(tmp_path / "p.amos", {f"users/{actor}/profile.md": "x"}))
    assert (actor == "-ok") == bool(report.added)
    assert (actor != "-ok") == bool(report.skipped)


@pytest.mark.parametrize("file", ["version.txt", "manifest.json"])
async def test_a_package_without_its_head_is_refused(away: Place, tmp_path: Path, file: str) -> None:
    path = tmp_path / "p.amos"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in (("version.txt", b"2.0.0"), ("manifest.json", b"{}")):
            if name != file:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    with pytest.raises(BundleError):
        await away.bundles.import_bundle(path)


async def test_a_package_of_another_version_is_refused(away: Place, tmp_path: Path) -> None:
    with pytest.raises(ProtocolVersionError):
        await away.bundles.import_bundle(package(tmp_path / "p.amos", {"version.txt": "3.0.0"}))


async def test_a_changed_file_does_not_pass_the_checksums(home: Place, away: Place, tmp_path: Path) -> None:
    await home.bundles.export(tmp_path / "p.amos", "u1")
    found: dict[str, str | bytes] = dict(members(tmp_path / "p.amos"))
    for harm in ({"users/u1/profile.md": "改过"}, {"users/u1/extra.md": "加的"}):
        with pytest.raises(BundleError, match="校验"):
            await away.bundles.import_bundle(package(tmp_path / "q.amos", {**found, **harm}))
    assert away.paths() == []


async def test_what_is_too_big_is_refused(away: Place, tmp_path: Path) -> None:
    sent = package(tmp_path / "p.amos", {"users/u1/profile.md": "x" * 100})
    with pytest.raises(BundleError):
        await away.bundles.import_bundle(sent, ImportOptions(limits=Limits(file=50)))
    assert away.paths() == []


SMALL = Limits(compressed=1_000, total=5_000, file=1_000, members=5, ratio=1, ratio_after=10)


async def test_what_compresses_well_is_exported_and_imported(home: Place, away: Place, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "啊" * 190_000}] * 4
    home.put("users/u1/sessions/s/messages.jsonl", "".join(json.dumps(t, ensure_ascii=False) + "\n" for t in turns))
    result = await home.bundles.export(tmp_path / "p.amos", "u1")
    assert not result.trusted_only
    await away.bundles.import_bundle(tmp_path / "p.amos")
    assert away.get("users/u1/sessions/s/messages.jsonl") == home.get("users/u1/sessions/s/messages.jsonl")


async def test_a_package_beyond_the_limits_is_told_and_comes_in_when_it_is_trusted(
    home: Place, away: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "DEFAULT", SMALL)
    assert (await home.bundles.export(tmp_path / "p.amos", "u1")).trusted_only
    with pytest.raises(BundleError, match="--trusted"):
        await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(limits=SMALL))
    report = await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(limits=SMALL, trusted=True))
    assert "users/u1/profile.md" in report.added
    assert away.load("users/u1/assets/tools/weather/metadata.json")["status"] == "draft"


@pytest.mark.parametrize("limit", ["compressed", "total", "file", "members", "ratio"])
async def test_every_limit_of_an_import_is_known_to_the_export(
    home: Place, away: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    home.put("users/u1/knowledge/d/" + "长" * 80 + ".md", "啊" * 9_000)
    tight = {"compressed": 900, "total": 25_000, "file": 26_999, "members": 10, "ratio": 5}
    limits = replace(Limits(ratio_after=0, ratio=10**6), **{limit: tight[limit]})
    monkeypatch.setattr(export, "DEFAULT", limits)
    assert (await home.bundles.export(tmp_path / "p.amos", "u1")).trusted_only
    with pytest.raises(BundleError):
        await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(limits=limits))


def test_the_command_line_tells_of_a_big_package_and_takes_it_in(
    home: Place, away: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "DEFAULT", SMALL)
    sent, run = str(tmp_path / "p.amos"), CliRunner()
    told = run.invoke(cli.amos, ["export", sent, "--root", str(home.root), "--actor", "u1"])
    assert (told.exit_code, "--trusted" in told.output) == (0, True)
    real, seen = PortabilityManager.import_now, []

    def import_now(self: PortabilityManager, path: Path, options: ImportOptions) -> ImportReport:
        seen.append(options.trusted)
        return real(self, path, replace(options, limits=SMALL))

    monkeypatch.setattr(PortabilityManager, "import_now", import_now)
    into = ["import", sent, "--root", str(away.root)]
    assert [run.invoke(cli.amos, [*into, *more]).exit_code for more in ([], ["--trusted"])] == [cli.FAILED, 0]
    assert seen == [False, True]


async def test_trust_in_the_size_is_no_trust_in_names(away: Place, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="不安全"):
        await away.bundles.import_bundle(package(tmp_path / "p.amos", {"../x": "x"}), ImportOptions(trusted=True))


@pytest.mark.parametrize(
    ("task", "travels"),
    [
        ({"actor": "u1", "payload": {}}, True),
        ({"actor": "u1", "payload": {"actor": "u1"}}, True),
        ({"actor": "u2", "payload": {}}, False),
        ({"actor": "u1", "payload": {"actor": "u2"}}, False),
        ({"actor": "u2", "payload": {"actor": "u1"}}, False),
        ({"payload": {}}, False),
    ],
)
async def test_a_task_travels_with_the_user_who_gave_it(
    home: Place, away: Place, tmp_path: Path, task: dict[str, Any], travels: bool
) -> None:
    home.put("tasks/pending/task_cc.json", {"type": "reflect", "status": "pending", **task})
    await home.bundles.export(tmp_path / "p.amos", "u1")
    assert ("tasks/pending/task_cc.json" in members(tmp_path / "p.amos")) is travels
    if travels:
        await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(actor_mapping={"u1": "new"}))
        stored = away.load("tasks/pending/task_cc.json")
        assert (stored["actor"], stored["payload"].get("actor", "new")) == ("new", "new")


@pytest.mark.parametrize("task", [{"actor": "victim", "payload": {"actor": "u1"}}, {"actor": "victim", "payload": {}}])
async def test_a_task_that_names_a_stranger_anywhere_is_left_out(
    away: Place, tmp_path: Path, task: dict[str, Any]
) -> None:
    files = {"users/u1/profile.md": "x", "tasks/pending/task_x.json": json.dumps({"type": "t", **task})}
    await away.bundles.import_bundle(package(tmp_path / "p.amos", dict(files)))
    assert away.get("tasks/pending/task_x.json") is None


async def test_tasks_for_users_who_are_not_in_the_package_are_left_out(away: Place, tmp_path: Path) -> None:
    task = json.dumps({"type": "t", "payload": {"actor": "victim"}})
    files = {"users/u1/profile.md": "x", "tasks/pending/task_x.json": task}
    report = await away.bundles.import_bundle(package(tmp_path / "p.amos", dict(files)))
    assert away.get("tasks/pending/task_x.json") is None
    assert "tasks/pending/task_x.json" in report.skipped


async def test_an_import_that_fails_midway_is_undone(
    home: Place, away: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away.put("shared/soul.md", "本地")
    away.put("users/u1/profile.md", "本地")
    await home.bundles.export(tmp_path / "p.amos")
    before = {path: away.get(path) for path in away.paths()}
    real, calls = merge._move, []

    def fail(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")
        real(*args)

    monkeypatch.setattr(merge, "_move", fail)
    with pytest.raises(OSError, match="space"):
        await away.bundles.import_bundle(tmp_path / "p.amos", ImportOptions(overwrite=True))
    assert len(calls) == 4
    assert {path: away.get(path) for path in away.paths()} == before


@pytest.mark.parametrize("at", range(6))
async def test_an_import_that_was_killed_is_finished_by_the_next(
    home: Place, away: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    class Killed(BaseException):
        pass

    away.put("shared/soul.md", "本地")
    away.put("users/u1/profile.md", "本地")
    await home.bundles.export(tmp_path / "p.amos")
    real, calls = merge._move, []

    def die(*args: Any) -> None:
        calls.append(args)
        if len(calls) > at:
            raise Killed
        real(*args)

    with monkeypatch.context() as patch:  # a kill runs no finally
        patch.setattr(merge, "_move", die)
        patch.setattr(merge, "_undo", lambda *_: None)
        patch.setattr(merge, "discard", lambda _: None)
        patch.setattr(FileRoot, "delete", lambda *_: None)
        with pytest.raises(Killed):
            away.bundles.import_now(tmp_path / "p.amos", ImportOptions(overwrite=True))
    for holder in away.root.parent.glob(".away.import-*/holder.json"):
        holder.write_text(json.dumps({**json.loads(holder.read_text()), "start": -1}))
    for lock in away.root.rglob("*.lock"):
        lock.unlink()
    assert await away.bundles.recover() == 1
    assert away.get("users/u1/profile.md") == "# 画像"
    assert away.get("users/u2/profile.md") == "u2 的画像"
    assert not list(away.root.parent.glob(".away.import-*"))


class Killed(BaseException):
    """A kill, as far as a test can play one: no clean-up of the import runs."""


@pytest.mark.parametrize("step", ["before", "after versions"])
async def test_what_follows_the_moves_is_done_for_a_killed_import_too(
    home: Place, away: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    home.index.tag(PurePosixPath("users/u1/profile.md"), "要")
    away.put("users/u1/profile.md", "本地")
    away.put("cache_version.txt", {"u1": 10})
    await home.bundles.export(tmp_path / "p.amos", "u1")

    def die(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(prefix, "bump", die) if step == "before" else patch.setattr(Index, "put_entries", die)
        patch.setattr(merge, "discard", lambda _: None)
        with pytest.raises(Killed):
            away.bundles.import_now(tmp_path / "p.amos", ImportOptions(overwrite=True))
    assert away.get("users/u1/profile.md") == "# 画像"
    assert await away.bundles.recover() == 1
    assert away.index.tagged("要") == ["users/u1/profile.md"]
    assert away.index.tagged("城市") == ["users/u1/knowledge/geo/hangzhou.md"]
    assert away.load("cache_version.txt")["u1"] > 10
    assert away.load("logs/imports.jsonl")["actors"] == ["u1"]
    assert away.get("version.txt") == "2.0.0"
    assert not list(away.root.parent.glob(".away.import-*"))


async def test_an_import_that_cannot_reach_the_index_is_finished_by_the_next(
    home: Place, away: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.index.tag(PurePosixPath("users/u1/profile.md"), "要")
    await home.bundles.export(tmp_path / "p.amos", "u1")

    def busy(*_: Any) -> None:
        raise Locked("数据被占用")

    with monkeypatch.context() as patch:
        patch.setattr(Index, "put_entries", busy)
        with pytest.raises(Locked):
            await away.bundles.import_bundle(tmp_path / "p.amos")
    assert len(away.bundles.leftovers()) == 1
    report = await away.bundles.import_bundle(tmp_path / "p.amos")
    assert report.changes == 0
    assert away.index.tagged("要") == ["users/u1/profile.md"]
    assert away.load("cache_version.txt")["u1"] >= 4
    assert not list(away.root.parent.glob(".away.import-*"))


async def test_the_journal_of_an_older_import_is_finished_as_well(away: Place) -> None:
    staging = away.bundles._new_staging()
    staging.write_text(PurePosixPath("tree/users/u1/profile.md"), "新")
    staging.write_json(merge.JOURNAL, {"moves": [["users", False]]})
    staging.delete(PurePosixPath("holder.json"))
    assert await away.bundles.recover() == 1
    assert away.get("users/u1/profile.md") == "新"


@pytest.mark.parametrize("links", [True, False])
async def test_what_is_written_between_plan_and_move_stays(
    home: Place, away: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    home.index.tag(PurePosixPath("users/u1/profile.md"), "要")
    await home.bundles.export(tmp_path / "p.amos", "u1")
    away.put("users/u1/agents/a/profile.txt", "seen by the plan")
    real = merge.apply

    def apply(*args: Any) -> Any:
        away.put("users/u1/profile.md", "刚写的")
        away.put("users/u1/knowledge/geo/hangzhou.md", "刚写的知识")
        away.put("users/u1/sessions/s/messages.jsonl", '{"role": "user", "content": "刚说的"}\n')
        return real(*args)

    def no_link(*_: Any) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(merge, "apply", apply)
    if not links:
        monkeypatch.setattr(os, "link", no_link)
    report = await away.bundles.import_bundle(tmp_path / "p.amos")
    assert away.get("users/u1/profile.md") == "刚写的"
    assert away.get("users/u1/knowledge/geo/hangzhou.md") == "刚写的知识"
    assert "刚说的" in (away.get("users/u1/sessions/s/messages.jsonl") or "")
    assert away.get("users/u1/sessions/s/summary.md") is None  # a session stays or goes as one
    assert away.get("users/u1/assets/tools/weather/definition.md") == "天气"
    assert {"users/u1/profile.md", "users/u1/knowledge/geo/hangzhou.md", "users/u1/sessions/s/summary.md"} <= set(
        report.kept
    )
    assert not set(report.kept) & set(report.added)
    assert away.load("logs/imports.jsonl")["added"] == len(report.added)
    assert away.index.tagged("要") == []


async def test_an_import_that_fails_among_what_others_write_takes_only_its_own_back(
    home: Place, away: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await home.bundles.export(tmp_path / "p.amos", "u1")
    plan, move = merge.apply, merge._move

    def apply(*args: Any) -> Any:
        away.put("users/u1/profile.md", "刚写的")
        return plan(*args)

    def fail(files: FileRoot, staging: Path, number: int, step: merge.Move) -> None:
        if step.path.endswith("sessions"):
            raise OSError(28, "No space left on device")
        move(files, staging, number, step)

    monkeypatch.setattr(merge, "apply", apply)
    monkeypatch.setattr(merge, "_move", fail)
    with pytest.raises(OSError, match="space"):
        await away.bundles.import_bundle(tmp_path / "p.amos")
    assert [path for path in away.paths() if path.startswith(("users", "shared"))] == ["users/u1/profile.md"]
    assert away.get("users/u1/profile.md") == "刚写的"


async def test_an_import_leaves_a_line_about_itself(home: Place, away: Place, tmp_path: Path) -> None:
    await home.bundles.export(tmp_path / "p.amos", "u1")
    await away.bundles.import_bundle(tmp_path / "p.amos")
    line = away.load("logs/imports.jsonl")
    assert (line["source"], line["trust"], line["actors"]) == ("import", "low", ["u1"])


async def test_a_missing_package_is_one_sentence(away: Place, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="找不到"):
        await away.bundles.import_bundle(tmp_path / "none.amos")
    with pytest.raises(BundleError):
        await away.bundles.import_bundle(tmp_path)


NAME = st.text("abcé杭州_-.1", min_size=1, max_size=8).filter(
    lambda n: n[0] not in ".-" and n[-1] != "." and n.strip(".")
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAME, st.text(st.characters(exclude_categories=("Cs",)), max_size=300), max_size=5))
def test_any_knowledge_survives_the_journey(tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str]) -> None:
    folder = tmp_path_factory.mktemp("trip")
    home, away = Place(folder / "home"), Place(folder / "away")
    home.put("users/u1/profile.md", "x")
    by_fold: dict[str, str] = {}
    for name, text in texts.items():
        if name.casefold() not in {known.casefold() for known in by_fold}:
            by_fold[name] = text
    for name, text in by_fold.items():
        home.files.write(PurePosixPath(f"users/u1/knowledge/d/{name}.md"), text.encode())
    home.bundles.export_now(
        folder / "p.amos", __import__("amrita_plugin_memory.amos.bundle.policy", fromlist=["x"]).Selection("u1")
    )
    report: ImportReport = away.bundles.import_now(folder / "p.amos", ImportOptions())
    assert not report.skipped
    for name, text in by_fold.items():
        assert away.files.read(PurePosixPath(f"users/u1/knowledge/d/{name}.md")) == text.encode()
