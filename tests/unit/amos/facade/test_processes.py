"""Several processes on one root, and processes that are killed. Longer runs: ``bench/amos_kill.py``."""

import json
import os
import subprocess
import sys

import pytest
from support.amos import ROOT, python, scope

from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.amos.memory import StableText, versions

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.name == "nt", reason="fork and kill -9 are POSIX"),
]


def run(*args):
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench/amos_kill.py"), *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_processes_that_write_one_session_lose_and_double_nothing():
    result = run("--crowd", "4", "--turns", "60")
    assert result["turns"] == 240
    assert (result["turns_lost"], result["turns_doubled"], result["halves"]) == (0, 0, 0)


def test_kills_at_random_moments_lose_and_double_nothing_that_was_acknowledged():
    result = run("--runs", "20", "--seed", "3")
    assert result["turns"] > 0
    assert (result["turns_lost"], result["turns_doubled"], result["halves"], result["imports_torn"]) == (0, 0, 0, 0)


def test_processes_that_append_to_one_profile_keep_every_line(tmp_path):
    code = (
        "import sys\nfrom amrita_plugin_memory.amos.ground import FileRoot\n"
        "from amrita_plugin_memory.amos.memory import StableText, sections\n"
        "stable = StableText(FileRoot.open(sys.argv[1], sync=False))\n"
        "for at in range(100):\n"
        " stable.write_profile('u1', lambda old: sections.add_to_section(old, 'facts', f'- {sys.argv[2]} {at}'))\n"
    )
    crowd = [python(code, str(tmp_path), str(number)) for number in range(4)]
    assert [process.wait() for process in crowd] == [0] * 4
    files = FileRoot.open(tmp_path)
    lines = StableText(files).profile("u1").split("\n")
    assert sorted(lines[1:]) == sorted(f"- {number} {at}" for number in range(4) for at in range(100))
    assert versions.get(files, scope()) == 401
