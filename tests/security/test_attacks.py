"""Attacks on the sandbox: a bounded selection in every run, all of them with ``-m exhaustive``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.attacks import ATTACKS, FEATURES, QUICK
from support.attacks.run import TESTS, in_arena

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the arena counts processes in /proc")
SHARED = Path(os.environ.get("AMRITA_SHARED", TESTS.parent.parent / "shared")) / "testbed" / "sandbox_attacks.py"
CANARIES = (
    "imported_os",
    "open_a_file",
    "hosts_environment_in_proc",
    "write_a_file",
    "run_a_program",
    "signal_the_host",
    "tcp_socket",
)


def test_the_suite_is_as_wide_as_it_promises() -> None:
    assert len(ATTACKS) >= 96
    assert len({attack.id for attack in ATTACKS}) == len(ATTACKS)
    assert len(FEATURES) == 35
    assert 20 <= len(QUICK) <= 30


@pytest.mark.timeout(300)
def test_the_selection_is_contained() -> None:
    found = in_arena("run_monty", [attack.id for attack in QUICK], seconds=280)
    assert {name: answer for name, answer in found.items() if answer["seen"]} == {}
    assert len(found) == len(QUICK)


@pytest.mark.timeout(180)
def test_an_unconfined_child_fails_the_suite() -> None:
    found = in_arena("run_nowhere", CANARIES, seconds=160)
    assert [name for name, answer in found.items() if not answer["seen"]] == []


@pytest.mark.timeout(120)
def test_enough_features_work_on_the_default_engine() -> None:
    found = in_arena("run_monty", ["features"], seconds=100)
    failed = [name for name, answer in found.items() if not answer["ok"]]
    assert len(found) - len(failed) >= 26, failed


@pytest.mark.exhaustive
@pytest.mark.timeout(120)
@pytest.mark.parametrize("runner", ["run_monty", "run_process"])
@pytest.mark.parametrize("id", [attack.id for attack in ATTACKS])
def test_every_attack_in_a_host_of_its_own_is_contained(id: str, runner: str) -> None:
    answer = in_arena(runner, [id], seconds=110)[id]
    assert answer["seen"] == [], answer


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_feature_works_on_the_process_engine() -> None:
    found = in_arena("run_process", ["features"], seconds=280)
    assert [name for name, answer in found.items() if not answer["ok"]] == []


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not SHARED.exists(), reason="the shared attack suite is not here")
def test_the_shared_suite_is_contained_as_well(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    env = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"}
    command = [sys.executable, str(SHARED), "--run", "support.sandboxed:run_monty", "--json", str(report)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=3500, check=False)
    found = json.loads(report.read_text())
    assert {name: answer for name, answer in found.items() if answer["effects"]} == {}, done.stdout[-2000:]
    assert len(found) == 96
