import subprocess
import sys

import pytest
from click.testing import CliRunner
from rich.console import Console

from amrita_plugin_memory.__main__ import COMMANDS, main
from amrita_plugin_memory.demo.checks import Finding, Turn, replied
from amrita_plugin_memory.demo.hostproc import HostFailed
from amrita_plugin_memory.demo.onebot import Place
from amrita_plugin_memory.demo.screen import Screen
from amrita_plugin_memory.demo.stage import Stage
from amrita_plugin_memory.kernel.errors import Locked


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--script", "--llm-base-url", "http://x/v1", "--llm-model", "m"], "--script"),
        (["--script", "--keep"], "--script"),
        (["--llm-base-url", "http://x/v1"], "--llm-model"),
        (["--llm-model", "m"], "--llm-base-url"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_starts(arguments, word, tmp_path):
    outcome = CliRunner().invoke(main, ["demo", "--dir", str(tmp_path / "bot"), *arguments])
    assert outcome.exit_code == 2
    assert word in outcome.output
    assert not (tmp_path / "bot").exists()


def test_a_foreign_folder_ends_the_demo_with_one_sentence(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    outcome = CliRunner().invoke(main, ["demo", "--script", "--dir", str(tmp_path)])
    assert outcome.exit_code == 1
    assert "--dir" in outcome.output
    assert "Traceback" not in outcome.output


def test_a_taken_port_ends_the_demo_with_one_sentence(tmp_path):
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        outcome = CliRunner().invoke(main, ["demo", "--script", "--dir", str(tmp_path / "bot"), "--port", port])
    assert outcome.exit_code == 1
    assert f"端口 {port}" in outcome.output


async def test_two_demos_never_share_a_folder(tmp_path):
    first, second = Stage(tmp_path / "bot"), Stage(tmp_path / "bot")
    first._take_folder()
    with pytest.raises(Locked, match="另一个演示"):
        second._take_folder()
    await first.close()
    second._take_folder()
    await second.close()


def test_a_missing_package_is_named_in_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    for name in [n for n in sys.modules if n.startswith("amrita_plugin_memory.demo")]:
        monkeypatch.delitem(sys.modules, name)
    outcome = CliRunner().invoke(main, ["demo", "--script"])
    assert outcome.exit_code == 1
    assert "缺少依赖包 aiohttp" in outcome.output


def test_help_is_answered_without_loading_anything_heavy():
    code = (
        "import sys; from amrita_plugin_memory.__main__ import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'aiohttp','chromadb','nonebot','rich','numpy','pydantic'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


def test_text_from_outside_is_never_markup():
    screen = Screen(Console(record=True, width=200, force_terminal=False))
    screen.turn(Turn(Place(1), "[red]甲[/red]", "[bold]乙"))
    screen.finding(replied(), Finding(True, "[/]丙"))
    screen.failure(HostFailed("死了[/x]", log_lines=["[a]"]))
    shown = screen.console.export_text()
    assert all(part in shown for part in ("[red]甲[/red]", "[bold]乙", "[/]丙", "死了[/x]", "[a]"))


def test_a_failed_stage_of_the_start_is_marked_and_the_error_goes_on():
    screen = Screen(Console(record=True, width=200, force_terminal=False))
    with pytest.raises(ValueError, match="x"), screen.progress("启动"):
        raise ValueError("x")
    assert "✗ 启动" in screen.console.export_text()
