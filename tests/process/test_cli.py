"""Both command lines as real processes, on a copy of data that the published plugin wrote."""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.embed_server import EmbedServer

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("AMRITA_SHARED", ROOT.parent / "shared"))
FIXTURE = SHARED / "fixtures" / "published-plugin-0.8.1"
CLI = [sys.executable, "-m", "amrita_plugin_memory"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not FIXTURE.is_dir(), reason="the published plugin's data is not here"),
]


@pytest.fixture(scope="module")
def embeddings():
    """An Ollama that has the fixture's model and another one, in a thread of its own."""
    server = EmbedServer(
        models=["stub-embed", "other-embed"], embedding_models=["stub-embed", "other-embed"], dimension=64
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(30)
    yield server
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


@pytest.fixture
def bot(tmp_path, embeddings):
    """A bot's folder with the published plugin's data in it."""
    shutil.copytree(FIXTURE / "data" / "amrita_plugin_memory", tmp_path / "data" / "amrita_plugin_memory")
    orm = tmp_path / "data" / "nonebot_plugin_orm"
    orm.mkdir()
    shutil.copy(FIXTURE / "data" / "db.sqlite3", orm / "db.sqlite3")
    configure(tmp_path, embeddings, model="stub-embed")
    return tmp_path


def configure(bot, embeddings, *, model, **more):
    lines = {
        "LOCALSTORE_USE_CWD": "true",
        "EMBEDDING_PROCTOL": "ollama-embed",
        "EMBEDDING_MODEL_URL": embeddings.url,
        "EMBEDDING_MODEL_NAME": model,
        **more,
    }
    (bot / ".env").write_text("".join(f"{name}={value}\n" for name, value in lines.items()), "utf-8")


def run(bot, *arguments, code=0, **options):
    """Run a command as an owner does; its envelope."""
    done = subprocess.run(
        [*CLI, *arguments, "--json"],
        cwd=bot,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        **options,
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    envelope = json.loads(done.stdout)  # nothing else on stdout
    assert envelope["code"] == code
    return envelope.get("data", envelope)


def test_an_owner_looks_backs_up_changes_the_model_rebuilds_and_restores(bot, embeddings):
    # The fixture's address is another port: to the names this is another space until it was told by the vectors.
    before = run(bot, "status", code=4)
    assert (before["rows"], before["partitions"], before["key_version"]) == (4, 1, 2)
    made = run(bot, "backup", "create")
    listed = run(bot, "backup", "list")["backups"]
    assert [one["manifest"] for one in listed] == [True, False]
    assert all(one["ok"] for one in run(bot, "backup", "verify")["backups"])

    refused = run(bot, "reindex", code=4)
    assert "--yes" in refused["error"]
    rebuilt = run(bot, "reindex", "--yes")
    assert rebuilt["amrita_user_memory"]["embedded"] == 4
    after = run(bot, "status")
    assert (after["rows"], after["state"], after["recorded"]["dimension"]) == (4, "same", 64)
    hits = run(bot, "search", "乌龙茶", "--user", "10001")["hits"]
    assert hits[0]["content"] == "我喜欢喝乌龙茶"

    configure(bot, embeddings, model="other-embed")
    changed = run(bot, "status", code=4)
    assert (changed["state"], len(changed["actions"])) == ("different", 1)
    words = run(bot, "search", "乌龙茶", "--user", "10001")
    assert words["hits"]
    assert "reindex" in words["note"]
    assert run(bot, "reindex", "--dry-run")["rows"]["amrita_user_memory"] == 4

    old = listed[1]["file"]  # written by the published plugin
    planned = run(bot, "backup", "restore", old, "--dry-run")
    assert (planned["rows"], planned["replaced"]) == (3, 4)
    assert run(bot, "backup", "restore", old, "--yes")["rows"] == 3
    assert (run(bot, "status")["rows"], run(bot, "status")["state"]) == (3, "same")
    assert run(bot, "backup", "restore", made["file"], "--yes")["rows"] == 4
    assert run(bot, "backup", "prune", "--keep", "1", "--dry-run")["removed"]


def test_facts_go_out_as_lines_and_come_into_another_bot_once(bot, embeddings, tmp_path):
    run(bot, "reindex", "--yes")
    counts = run(bot, "export", "out.ndjson")
    assert (counts["facts"], counts["memos"]) == (4, 1)
    other = tmp_path / "other"
    other.mkdir()
    configure(other, embeddings, model="other-embed")
    shutil.copy(bot / "out.ndjson", other / "in.ndjson")
    first = run(other, "import", "in.ndjson", "--yes")
    assert first["added"] + first["known"] == 4  # the fixture says one thing twice
    assert run(other, "import", "in.ndjson", "--yes")["added"] == 0
    assert run(other, "stats")["rows"] == first["added"]


def test_old_keys_of_facts_and_memos_are_moved(bot):
    database = bot / "data" / "nonebot_plugin_orm" / "db.sqlite3"
    with sqlite3.connect(database) as db:
        db.execute("UPDATE amrita_plugin_memory_user_memo SET user_id = 'user_10001'")
    db.close()
    assert run(bot, "migrate-keys", "--dry-run")["memos"] == 1
    assert run(bot, "migrate-keys")["memos"] == 1
    assert run(bot, "migrate-keys")["memos"] == 0


def test_what_changes_data_is_refused_while_the_bot_runs_and_reading_is_not(bot):
    hold = (
        "import asyncio, sys, pathlib; from amrita_plugin_memory.vectordb import open_store;"
        "from amrita_plugin_memory.settings import EnvSettings\n"
        "async def main():\n"
        "    s = await open_store(EnvSettings(), directory=pathlib.Path(sys.argv[1])); print('held', flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())"
    )
    store = bot / "data" / "amrita_plugin_memory" / "vector_db.chroma"
    holder = subprocess.Popen([sys.executable, "-c", hold, str(store)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline().strip() == "held"
        assert run(bot, "reindex", "--yes", code=11)["ok"] is False
        assert run(bot, "status", code=4)["running"] is True
        assert run(bot, "backup", "create")["file"]
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert run(bot, "reindex", "--yes")["amrita_user_memory"]["rows"] == 4


def test_an_interrupt_ends_with_130_and_loses_nothing(bot, embeddings):
    embeddings.faults.slow = 3.0
    try:
        process = subprocess.Popen(
            [*CLI, "reindex", "--yes", "--json"],
            cwd=bot,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A suite that was itself started in the background ignores the interrupt, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        asked, until = len(embeddings.requests), time.monotonic() + 120
        while len(embeddings.requests) == asked and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    finally:
        embeddings.faults.slow = 0.0
    assert (process.returncode, json.loads(out)["code"]) == (130, 130)
    assert run(bot, "status", code=4)["rows"] == 4
    assert run(bot, "reindex", "--yes")["amrita_user_memory"]["rows"] == 4


def test_wrong_use_and_wrong_settings_end_with_2_and_one_sentence(bot, embeddings):
    done = subprocess.run([*CLI, "no-such-thing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert run(bot, "search", "x", "--user", "1", "--group", "2", code=2)["error"]
    configure(bot, embeddings, model="stub-embed", REEMBED_BATCH_SIZE="0")
    error = run(bot, "status", code=2)["error"]
    assert "reembed_batch_size" in error.lower()
    assert run(bot, "backup", "restore", "nothing.json", "--yes", code=2)["error"]


def test_doctor_names_what_is_wrong_and_the_mend(bot):
    found = {one["name"]: one for one in run(bot, "doctor", code=1)["findings"]}
    assert found["pyproject.toml"]["level"] == "fail"
    assert found["聊天"]["mend"]
    assert found["嵌入服务"]["level"] == "ok"
    assert found["数据库"]["level"] == "ok"


def test_doctor_sees_a_torn_index_and_a_server_that_is_down(bot, embeddings):
    header = next(bot.glob("data/amrita_plugin_memory/vector_db.chroma/*/header.bin"))
    header.chmod(0o600)
    header.write_bytes(b"")
    found = {one["name"]: one for one in run(bot, "doctor", "--offline", code=1)["findings"]}
    assert "文字都在" in found["向量索引"]["say"]
    assert "reindex" in found["向量索引"]["mend"]
    configure(bot, embeddings, model="stub-embed", VECTOR_DB_TYPE="remote", VECTOR_DB_PORT="9", VECTOR_DB_TIMEOUT="3")
    found = {one["name"]: one for one in run(bot, "doctor", code=1)["findings"]}
    assert found["记忆库"]["level"] == "fail"
    assert "VECTOR_DB_SERVER" in found["记忆库"]["say"]
    offline = {one["name"]: one for one in run(bot, "doctor", "--offline", code=1)["findings"]}
    assert offline["记忆库"]["level"] == "ok"


def test_status_needs_no_chroma_and_no_model(bot):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "amrita_plugin_memory", "status"],
        cwd=bot,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    imported = {line.rsplit("|", 1)[-1].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert not imported & {"chromadb", "openai", "ollama", "sqlalchemy", "nonebot"}


def test_an_empty_folder_is_no_error_and_stays_empty(tmp_path):
    (tmp_path / ".env").write_text("LOCALSTORE_USE_CWD=true\n", "utf-8")
    assert run(tmp_path, "status")["rows"] == 0
    assert run(tmp_path, "backup", "list")["backups"] == []
    assert not (tmp_path / "data").exists()
