"""The wheel in an environment of its own, on a bot folder of the published plugin, as an owner would install it."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import uv
from support.host import call, respond

from amrita_plugin_memory.demo.folder import child_env
from amrita_plugin_memory.demo.hostproc import tool_dirs
from amrita_plugin_memory.demo.onebot import Place
from amrita_plugin_memory.demo.stage import Stage

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("AMRITA_SHARED", ROOT.parent / "shared"))
OLD = SHARED / "fixtures" / "published-plugin-0.8.1"


def run(*args, cwd):
    done = subprocess.run([uv.find_uv_bin(), *args], cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    run("build", "--wheel", "--out-dir", str(out), cwd=ROOT)
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def python(wheel, tmp_path_factory):
    """An environment that has the wheel, and neither this checkout nor the embedded model."""
    folder = tmp_path_factory.mktemp("venv")
    run("venv", "--python", sys.executable, str(folder / "v"), cwd=folder)
    executable = folder / "v" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run("pip", "install", "--python", str(executable), str(wheel), "ambot-inlinectl>=0.2,<0.3", "uv", cwd=folder)
    return str(executable)


def test_the_wheel_carries_migrations_default_configuration_and_prompts(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "amrita_plugin_memory/migrations/21f55abc2b90_init.py",
        "amrita_plugin_memory/migrations/6004d221a7de_state.py",
        "amrita_plugin_memory/defaults/config.toml",
        "amrita_plugin_memory/defaults/prompt/subconscious_main.md.jinja2",
        "amrita_plugin_memory/defaults/prompt/subconscious_send.md.jinja2",
        "amrita_plugin_memory/defaults/prompt/knowledge_guide.md.jinja2",
        "amrita_plugin_memory/defaults/prompt/profile_guide.md.jinja2",
        "amrita_plugin_memory/py.typed",
    ):
        assert wanted in names
    assert not [name for name in names if name.startswith(("tests/", "bench/"))]


def take_over(folder: Path) -> None:
    """The data of the published plugin, where its own bot had it."""
    if OLD.is_dir():
        shutil.copytree(OLD / "data" / "amrita_plugin_memory", folder / "data" / "amrita_plugin_memory")
        database = folder / "data" / "nonebot_plugin_orm" / "db.sqlite3"
        database.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(OLD / "data" / "db.sqlite3", database)
        for path in folder.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)


def orm_check(python: str, folder: Path, settings) -> str:
    """What ``ambot orm check`` says of the bot's database."""
    env = child_env(settings, os.environ, tool_dirs=(Path(python).parent, *tool_dirs()))
    done = subprocess.run(
        [python, "-m", "ambot_inlinectl", "orm", "check"],
        cwd=folder, env=env, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return done.stdout + done.stderr


@pytest.mark.asyncio(loop_scope="session")
async def test_the_wheel_loads_migrates_and_answers_on_the_published_plugins_data(python, tmp_path):
    async with Stage(tmp_path / "bot", respond=respond, python=python, prepare=take_over) as bot:
        stranger = Place(31001)
        # The old data was made with a model that is not here: nothing is stored that could not be compared.
        expected = "error" if OLD.is_dir() else "success"
        assert (await call(bot, stranger, "write_memory", content="轮子里也记得住"))["status"] == expected
        assert "用法" in ((await bot.say(stranger, "/memory")).reply or "")
        if OLD.is_dir():
            await on_old_data(bot)
    assert "没有检测到新的升级操作" in orm_check(python, tmp_path / "bot", bot.settings)
    if not OLD.is_dir():
        pytest.skip("the fixtures of the published plugin are not here (../shared)")


async def on_old_data(bot):
    """Memo row and facts of the published plugin are there, by our tools and by the command."""
    owner = Place(10001)
    listed = (await bot.say(owner, "/memory user list")).reply or ""
    assert "我养了一只猫" in listed
    assert "共 4 条" in listed
    assert "乌龙茶" in ((await bot.say(owner, "/memory memo")).reply or "")
    found = await call(bot, owner, "read_memory", query="乌龙茶", scope="user")
    assert "我喜欢喝乌龙茶" in [hit["text"] for hit in found["hits"]]
    turn = await bot.say(owner, "你好")
    assert all("喜欢乌龙茶" in (request.reading.memo or "") for request in turn.chat_requests)
