import json
import os
import socket
import tomllib
from pathlib import Path

import pytest

from amrita_plugin_memory.demo.folder import (
    LLM_KEY_VARIABLE,
    BotSettings,
    Endpoint,
    child_env,
    claim,
    env_of,
    faults,
    files_of,
    lay_out,
)
from amrita_plugin_memory.demo.net import free_port, is_taken
from amrita_plugin_memory.kernel.errors import InvalidInput

SETTINGS = BotSettings(18100, Endpoint("http://127.0.0.1:9/v1", "sk-secret", "m"), password="pw", access_token="tok")


def test_the_texts_avoid_every_trap_that_the_checker_knows():
    files = files_of(SETTINGS)
    assert faults(files[".env"], files["config/chat/config.toml"]) == []


@pytest.mark.parametrize(
    ("env", "config", "word"),
    [
        ("RATE_LIMIT=1\n", "enable = true", "WEBUI_PASSWORD"),
        ("WEBUI_PASSWORD=admin123\nRATE_LIMIT=1\n", "enable = true", "WEBUI_PASSWORD"),
        ("WEBUI_PASSWORD=x\n", "enable = true", "RATE_LIMIT"),
        ("WEBUI_PASSWORD=x\nRATE_LIMIT=0\n", "enable = true", "RATE_LIMIT"),
        ("WEBUI_PASSWORD=x\nRATE_LIMIT=1\n", "", "enable = true"),
        ("WEBUI_PASSWORD=x\nRATE_LIMIT=1\n", "enable = false", "enable = true"),
        ("WEBUI_PASSWORD=x\nRATE_LIMIT=1\n", "enable = maybe", "TOML"),
    ],
)
def test_each_trap_is_found_and_told_in_one_sentence(env, config, word):
    (told,) = faults(env, config)
    assert word in told


def test_the_files_name_the_plugin_and_parse():
    files = files_of(SETTINGS)
    assert "amrita_plugin_memory" in tomllib.loads(files["pyproject.toml"])["tool"]["amrita"]["plugins"]
    assert tomllib.loads(files["config/chat/config.toml"])["enable"] is True
    assert json.loads(files["config/chat/models/default.json"])["base_url"] == "http://127.0.0.1:9/v1"


def test_the_key_of_the_model_is_in_no_file_and_in_no_repr():
    assert not [name for name, text in files_of(SETTINGS).items() if "sk-secret" in text]
    assert "sk-secret" not in repr(SETTINGS)
    assert child_env(SETTINGS, {}, tool_dirs=())[LLM_KEY_VARIABLE] == "sk-secret"


def test_what_the_shell_says_never_overrides_the_env_file():
    shell = {
        "PORT": "1",
        "host": "0.0.0.0",
        "EMBEDDING_MODEL_URL": "x",
        "VECTOR_DB_TYPE": "remote",
        "HOME": "/h",
        "PATH": "/bin",
    }
    env = child_env(SETTINGS, shell, tool_dirs=(Path("/first"), Path("/second")))
    assert not {name.upper() for name in env} & {"PORT", "HOST", "EMBEDDING_MODEL_URL", "VECTOR_DB_TYPE"}
    assert env["HOME"] == "/h"
    assert env["PATH"] == os.pathsep.join([str(Path("/first")), str(Path("/second")), "/bin"])


def test_every_name_of_the_env_file_is_taken_out_of_the_shell():
    env = child_env(SETTINGS, dict.fromkeys(env_of(SETTINGS), "shell"), tool_dirs=())
    assert "shell" not in env.values()


def test_loopback_never_goes_through_a_proxy():
    assert child_env(SETTINGS, {"no_proxy": "corp"}, tool_dirs=())["NO_PROXY"] == "corp,127.0.0.1,localhost"


def test_a_second_demo_starts_afresh_unless_told_to_keep(tmp_path):
    folder = tmp_path / "bot"
    lay_out(folder, SETTINGS)
    stored = folder / "data" / "x"
    stored.parent.mkdir()
    stored.write_text("old")
    lay_out(folder, SETTINGS, keep=True)
    assert stored.exists()
    lay_out(folder, SETTINGS)
    assert not stored.exists()
    assert (folder / ".env").stat().st_mode & 0o077 == 0


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").write_text("1")
    with pytest.raises(InvalidInput, match="--dir"):
        lay_out(tmp_path, SETTINGS)
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


def test_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(InvalidInput, match="不是文件夹"):
        claim(tmp_path / "x")


def test_a_port_is_taken_while_somebody_listens():
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
        server.listen()
        port = server.getsockname()[1]
        assert is_taken(port)
    assert not is_taken(port)
