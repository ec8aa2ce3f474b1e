"""``amrita-memory runs`` as a real process, on real Chroma and a real AMOS root that a cycle has worked on."""

import json
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

import pytest
from support.services import ZHANG

from amrita_plugin_memory.app import L3Ports, open_app
from amrita_plugin_memory.kernel.clock import SystemClock
from amrita_plugin_memory.memo import MemoryMemoStore
from amrita_plugin_memory.settings import EnvSettings, FileSettings
from amrita_plugin_memory.subconscious.memory import ManualTimer, MemoryMessenger, MemoryStateStore, ScriptedReasoner

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
FILE = FileSettings.model_validate({"subconscious": {"enabled": True, "target_user_id": "10001"}})


async def no_character():
    return ""


@asynccontextmanager
async def bot(folder: Path, rounds=()):
    """The services of a bot in this folder, with a scripted model."""
    ports = L3Ports(
        reasoner=ScriptedReasoner(rounds), timer=ManualTimer(), messenger=MemoryMessenger(), states=MemoryStateStore(),
        config_dir=folder / "config" / "amrita_plugin_memory", zone=UTC, character=no_character,
    )  # fmt: skip
    data = folder / "data" / "amrita_plugin_memory"
    env = EnvSettings(embedding_proctol="embedded")
    store = MemoryMemoStore(SystemClock())
    async with open_app(env=env, file=lambda: FILE, data_dir=data, memo_store=store, l3=ports) as app:
        yield app


def cli(folder, *args):
    done = subprocess.run(
        [sys.executable, "-m", "amrita_plugin_memory", "runs", *args, "--bot", str(folder), "--json"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


async def test_a_run_is_listed_shown_and_undone_from_a_terminal(tmp_path):
    (tmp_path / ".env").write_text("LOCALSTORE_USE_CWD=true\nEMBEDDING_PROCTOL=embedded\n", "utf-8")
    config = tmp_path / "config" / "amrita_plugin_memory" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[subconscious]\nenabled = true\ntarget_user_id = "10001"\n', "utf-8")
    async with bot(tmp_path) as app:
        kept = await app.facts.remember(ZHANG, scope="user", content="喜欢茶")
        gone = await app.facts.remember(ZHANG, scope="user", content="喜欢喝茶")
        before = [one.fact for one in (await app.facts.survey(ZHANG, scope="user")).facts]
    rounds = [
        [
            ("subconscious_update_memory", {"id": kept.short, "importance": "high"}),
            ("subconscious_delete_memory", {"id": gone.short}),
            ("subconscious_update_profile", {"summary": "爱茶", "new_lines": "- 茶"}),
            ("subconscious_knowledge_create", {"title": "茶", "summary": "泡茶", "body": "热水"}),
        ],
        [("subconscious_iter_stop", {"summary": "合并了茶"})],
    ]
    async with bot(tmp_path, rounds) as app:
        assert "整理完成" in await app.subconscious.run_now("10001")
        code, refused = cli(tmp_path, "revert", "nothing", "--yes")
        assert (code, refused["ok"]) == (1, False)
        run_id = cli(tmp_path, "list")[1]["data"]["runs"][0]["id"]
        assert cli(tmp_path, "revert", run_id, "--yes")[0] == 11  # the bot runs
    code, listed = cli(tmp_path, "list")
    assert (code, listed["data"]["runs"][0]["summary"], listed["data"]["runs"][0]["effects"]) == (0, "合并了茶", 4)
    assert len(cli(tmp_path, "show", run_id)[1]["data"]["steps"]) == 5
    code, undone = cli(tmp_path, "revert", run_id, "--yes")
    assert (code, undone["data"]["undone"], undone["data"]["skipped"]) == (0, 4, [])
    assert cli(tmp_path, "revert", run_id, "--yes")[0] == 2  # a second time
    async with bot(tmp_path) as app:
        after = [one.fact for one in (await app.facts.survey(ZHANG, scope="user")).facts]
        assert sorted(after, key=lambda f: f.id) == sorted(before, key=lambda f: f.id)
        assert await app.knowledge.list() == []
