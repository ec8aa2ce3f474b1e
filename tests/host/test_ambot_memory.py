"""``ambot memory …`` as an owner runs it: the host loads everything, and our commands come after its log lines."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from amrita_plugin_memory.demo.folder import BotSettings, Endpoint, files_of
from amrita_plugin_memory.demo.hostproc import tool_dirs

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("AMRITA_SHARED", ROOT.parent / "shared"))
FIXTURE = SHARED / "fixtures" / "published-plugin-0.8.1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A bot folder with the published plugin's data and no bot running."""
    if not FIXTURE.is_dir():
        pytest.skip("the published plugin's data is not here")
    root = tmp_path_factory.mktemp("ambot") / "bot"
    settings = BotSettings(port=1, llm=Endpoint("http://127.0.0.1:1/v1", "none", "none"))
    for name, text in files_of(settings).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    shutil.copytree(FIXTURE / "data" / "amrita_plugin_memory", root / "data" / "amrita_plugin_memory")
    return root


def ambot(folder, *arguments):
    path = os.pathsep.join([*map(str, tool_dirs()), os.environ.get("PATH", "")])
    result = folder / "out.json"
    result.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "ambot_inlinectl", "memory", *arguments, "-o", str(result)],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    said = done.stdout[-3000:] + done.stderr[-3000:]
    return done.returncode, json.loads(result.read_text("utf-8")) if result.is_file() else {}, said


async def test_the_host_offers_our_commands_and_they_work_on_the_published_plugins_data(folder):
    code, envelope, said = await asyncio.to_thread(ambot, folder, "status")
    assert envelope, said
    # The demo's folder asks for the embedded model, the data was made by a service.
    assert (code, envelope["code"], envelope["data"]["rows"]) == (4, 4, 4), said
    assert envelope["data"]["state"] == "different"
    code, envelope, said = await asyncio.to_thread(ambot, folder, "reindex", "--yes")
    assert (code, envelope["data"]["amrita_user_memory"]["rows"]) == (0, 4), said
    code, envelope, said = await asyncio.to_thread(ambot, folder, "status")
    assert (code, envelope["data"]["state"]) == (0, "same"), said
    code, envelope, said = await asyncio.to_thread(ambot, folder, "backup", "list")
    assert (code, len(envelope["data"]["backups"])) == (0, 2), said
