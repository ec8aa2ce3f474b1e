"""The settings as the host hands them on: NoneBot's `.env` and uniconf's `config.toml`, both real, in a process each."""

import json
import subprocess
import sys
import tomllib

import pytest

BEGIN = """
import asyncio, json, nonebot
nonebot.init(driver="~none", log_level="ERROR")
nonebot.load_plugin("nonebot_plugin_localstore")
nonebot.load_plugin("nonebot_plugin_uniconf")
from amrita_plugin_memory.host import settings
from amrita_plugin_memory.kernel.errors import ConfigInvalid
def tell(what):
    print("TOLD " + json.dumps(what))
"""
READ_ENV = """
try:
    env = settings.read_env()
except ConfigInvalid as e:
    tell(str(e))
else:
    shown = env.model_dump(mode="json")
    shown["embedding_model_api_key"] = env.embedding_model_api_key.get_secret_value()
    shown["vector_db_remote_headers"] = {k: v.get_secret_value() for k, v in env.vector_db_remote_headers.items()}
    tell(shown)
"""
READ_FILE = """
async def main():
    try:
        file = (await settings.open_file()).config
    except ConfigInvalid as e:
        tell(str(e))
    else:
        tell(file.model_dump())
asyncio.run(main())
"""


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCALSTORE_USE_CWD", "true")

    def run(body):
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + body],
            capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60,
        )  # fmt: skip
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
        return json.loads(line[5:])

    return run


@pytest.fixture
def config(tmp_path):
    folder = tmp_path / "config" / "amrita_plugin_memory"
    folder.mkdir(parents=True)
    return folder / "config.toml"


def test_values_of_dotenv_that_look_like_json_are_taken_as_they_are_written(told, tmp_path):
    (tmp_path / ".env").write_text(
        "EMBEDDING_MODEL_API_KEY=123456\nEMBEDDING_MODEL_NAME=7\nVECTOR_DB_TENANT=1\nVECTOR_DB_DATABASE=null\n"
        'VECTOR_DB_REMOTE_HEADERS={"X-Token": 42, "X-Yes": true}\nEMBEDDING_TIMEOUT=5\n'
    )
    env = told(READ_ENV)
    assert env["embedding_model_api_key"] == "123456"
    assert (env["embedding_model_name"], env["vector_db_tenant"], env["vector_db_database"]) == ("7", "1", "null")
    assert env["vector_db_remote_headers"] == {"X-Token": "42", "X-Yes": "true"}
    assert env["embedding_timeout"] == 5


def test_a_bad_value_of_dotenv_is_named_as_it_is_spelled_there_and_in_chinese(told, tmp_path):
    (tmp_path / ".env").write_text("VECTOR_DB_PORT=99999\n")
    assert told(READ_ENV) == ".env 有误：VECTOR_DB_PORT: 不能大于 65535"


def test_what_the_file_says_beyond_our_fields_is_still_there_after_the_host_wrote_it_again(told, config):
    config.write_text(
        'future_key = 1\nmemo_max_chars = 900\n[decay]\nenabled = true\n[recall]\nodd = "x"\n'
        "[subconscious]\nlater = [1, 2]\nsince = 2026-01-02\n"
    )
    told("asyncio.run(settings.open_file())\ntell(0)")
    written = tomllib.loads(config.read_text("utf-8"))
    assert (written["future_key"], written["memo_max_chars"], written["decay"]) == (1, 900, {"enabled": True})
    assert written["recall"]["odd"] == "x"
    assert (written["subconscious"]["later"], str(written["subconscious"]["since"])) == ([1, 2], "2026-01-02")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("memo_max_chars = 5", "配置文件 config.toml 有误：memo_max_chars: 不能小于 100"),
        ("[subconscious]\nenabled = 'perhaps'", "配置文件 config.toml 有误：subconscious.enabled: 应为 true 或 false"),
        ("a = 1\n= broken", "配置文件 config.toml 不是有效的 TOML，请检查第 2 行第 1 列"),
        ("\ufeffmemo_max_chars = 900", "配置文件 config.toml 宿主读不了，请另存为不带 BOM 的 UTF-8"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence_before_the_host_trips_over_it(told, config, text, sentence):
    config.write_text(text, encoding="utf-8")
    assert told(READ_FILE) == sentence
    assert config.read_text("utf-8") == text


def test_an_owner_without_a_file_gets_one_with_every_default(told, config):
    assert told(READ_FILE)["memo_max_chars"] == 1000
    assert tomllib.loads(config.read_text("utf-8"))["subconscious"]["enabled"] is False
