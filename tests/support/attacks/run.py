"""Starts arenas from a test: one process for many attacks, or one each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .arena import SECRETS

TESTS = Path(__file__).resolve().parents[2]


def in_arena(runner: str, ids: Iterable[str], *, seconds: float) -> dict[str, dict[str, Any]]:
    """What each attack (or each feature) showed, by id; an attack without an answer killed its host."""
    wanted = list(ids)
    env = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}", "ARENA_SECRET": SECRETS[0]}
    host = subprocess.Popen(
        [sys.executable, "-m", "support.attacks.arena", runner, *wanted],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=env,
        start_new_session=True,
    )
    try:
        out, _ = host.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(host.pid, signal.SIGKILL)
        out, _ = host.communicate()
    lines = [line for line in out.decode("utf-8", "replace").splitlines() if line.startswith('{"id"')]
    found = {answer["id"]: answer for answer in map(json.loads, lines)}
    tail = out.decode("utf-8", "replace")[-300:]
    missing = [] if wanted == ["features"] else [name for name in wanted if name not in found]
    return {**found, **{name: {"id": name, "seen": ["dead"], "said": tail, "seconds": -1} for name in missing}}
