import json
import stat
import subprocess
import sys

import pytest
from support.amos import listing

from amrita_plugin_memory.amos import AMOS, AMOSOptions, ProtocolVersionError
from amrita_plugin_memory.kernel.errors import Corrupt, InvalidInput, InvalidName


async def test_both_call_forms_open_a_root(tmp_path):
    async with await AMOS.create(root_dir=str(tmp_path / "a"), actor="u1", agent="g") as amos:
        assert amos.scope_name == "u1/g"
    async with await AMOS.create(AMOSOptions(root_dir=tmp_path / "a", actor="u2")) as amos:
        assert amos.scope_name == "u2"
    async with await AMOS.create(AMOSOptions(root_dir=tmp_path / "a", actor="u2"), actor="u3") as amos:
        assert amos.scope_name == "u3"


async def test_a_new_root_has_the_protocols_folders_and_files(amos, tmp_path):
    root = tmp_path / "root"
    assert (root / "version.txt").read_bytes() == b"2.0.0"
    assert json.loads((root / "cache_version.txt").read_text()) == {}
    assert json.loads((root / "manifest.json").read_text()) == {
        "amos_version": "2.0", "name": "unnamed-system", "description": None, "author": "system", "model": None,
        "env_vars": [], "required_capabilities": {}, "version": "2.0.0",
    }  # fmt: skip
    for folder in (
        "shared/workflows",
        "shared/knowledge",
        "shared/assets",
        "users/u1/agents",
        "tasks/pending",
        "tasks/failed",
        "events",
        "acl",
        "logs",
    ):
        assert (root / folder).is_dir()
    assert stat.S_IMODE(root.stat().st_mode) == 0o700 or sys.platform == "win32"


async def test_opening_a_root_again_changes_nothing_in_it(open_amos, tmp_path):
    amos = await open_amos()
    await amos.close()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "root").rglob("*")}
    await (await open_amos(actor="u1")).close()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "root").rglob("*")} == before


async def test_the_actor_comes_from_the_environment_when_none_is_named(open_amos, monkeypatch):
    monkeypatch.setenv("AMOS_ACTOR", "from_env")
    assert (await open_amos(actor=None)).scope_name == "from_env"
    monkeypatch.delenv("AMOS_ACTOR")
    assert (await open_amos(actor="")).scope_name == "anonymous"


@pytest.mark.parametrize("version", ["2.0.0\n", "\ufeff2.0.0", "", "  2.0.0\r\n"])
async def test_small_differences_of_the_version_file_are_tolerated(open_amos, tmp_path, version):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/version.txt").write_text(version, "utf-8")
    await open_amos()


async def test_another_protocol_version_is_refused(open_amos, tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/version.txt").write_text("3.0.0")
    with pytest.raises(ProtocolVersionError):
        await open_amos()
    assert listing(tmp_path / "root") == ["version.txt"]


async def test_a_broken_manifest_is_told_and_unknown_keys_are_no_fault(open_amos, tmp_path):
    (tmp_path / "root").mkdir()
    path = tmp_path / "root/manifest.json"
    path.write_text("{")
    with pytest.raises(Corrupt, match="doctor"):
        await open_amos()
    path.write_text('{"name": "mine", "extra": 1, "env_vars": ["A"]}')
    amos = await open_amos()
    assert (amos.manifest.name, amos.manifest.env_vars, amos.manifest.extra) == ("mine", ("A",), {"extra": 1})
    assert amos.manifest.to_dict()["extra"] == 1


@pytest.mark.parametrize(
    "wrong", [{"rootdir": "x"}, {"root_dir": ""}, {"archive_zone": "Mars/Base"}, {"max_history_turns": 0}]
)
async def test_an_unusable_setting_is_refused_with_a_sentence(open_amos, wrong):
    with pytest.raises(InvalidInput):
        await open_amos(**wrong)


@pytest.mark.parametrize("name", ["../../EVIL", ".", "..", "a/b", "x" * 300, "a\0", "con"])
@pytest.mark.parametrize("part", ["actor", "agent", "session_id"])
async def test_a_hostile_name_makes_nothing_anywhere(open_amos, tmp_path, part, name):
    with pytest.raises(InvalidName):
        await open_amos(**{part: name})
    assert listing(tmp_path) == []


async def test_auto_grant_writes_a_list_for_whoever_has_none_and_never_over_one(open_amos, tmp_path):
    amos = await open_amos(auto_grant_actor=True)
    assert await amos.security_manager.check_permission("assets/tools/x", "execute", "u1")
    path = tmp_path / "root/users/u1/acl.json"
    path.write_text('{"owner": "u1", "entries": [], "default": {}}')
    await open_amos(auto_grant_actor=True)
    assert json.loads(path.read_text())["default"] == {}


def test_importing_the_library_starts_no_bot_and_opens_nothing():
    code = "import sys, amrita_plugin_memory.amos; print([m for m in ('nonebot', 'amrita', 'chromadb', 'openai') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
