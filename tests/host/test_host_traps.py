"""The host's traps, really fallen into: each ends in one sentence that says what to do."""

import os

import pytest

from amrita_plugin_memory.demo.folder import BotSettings, Endpoint, child_env, lay_out
from amrita_plugin_memory.demo.hostproc import HostFailed, HostProcess, tool_dirs
from amrita_plugin_memory.demo.net import free_port


@pytest.fixture
def settings():
    return BotSettings(free_port(), Endpoint("http://127.0.0.1:9/v1", "k", "m"))


@pytest.fixture
def host(tmp_path, settings):
    def make(**env):
        lay_out(tmp_path / "bot", settings)
        whole = {**child_env(settings, os.environ, tool_dirs=tool_dirs()), **env}
        return HostProcess(tmp_path / "bot", whole, log=tmp_path / "bot" / "logs" / "bot.log")

    return make


async def test_a_host_that_finds_no_uv_is_told_to_install_it(host):
    with pytest.raises(HostFailed, match="pip install uv") as failed:
        await host(PATH=os.devnull).migrate()
    assert failed.value.log_lines


async def test_a_database_that_was_not_migrated_is_told_with_the_right_command(host):
    bot = host()
    with pytest.raises(HostFailed, match="ambot orm upgrade"):
        await bot.start()
    assert not bot.is_running
