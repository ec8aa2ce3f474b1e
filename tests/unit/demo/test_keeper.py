import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

KEEPER = [sys.executable, "-m", "amrita_plugin_memory.demo.keeper", sys.executable, "-c"]
SAY_AND_STAY = "import os,sys,time; print(os.getpid(), sys.stdin.read() == '', flush=True); time.sleep(600)"


def start(code):
    return subprocess.Popen(
        [*KEEPER, code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def test_the_exit_code_of_the_command_is_passed_on():
    with start("raise SystemExit(7)") as keeper:
        assert keeper.wait(30) == 7


def test_the_command_has_an_empty_input_and_ends_when_its_parent_is_gone():
    with start(SAY_AND_STAY) as keeper:
        pid, empty_input = keeper.stdout.readline().split()
        assert empty_input == "True"
        keeper.stdin.close()  # what the system does to the pipe when a parent dies, however it dies
        keeper.wait(30)
        assert keeper.stdout.read() == ""  # the pipe is closed at both ends: nobody is left who could write
        assert int(pid) > 0


def test_a_command_that_ignores_the_polite_signal_is_killed_with_all_it_started():
    stubborn = (
        "import signal,subprocess,sys,time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "subprocess.Popen([sys.executable,'-c','import time; time.sleep(600)']); print('up', flush=True); time.sleep(600)"
    )
    with start(stubborn) as keeper:
        assert keeper.stdout.readline() == "up\n"
        keeper.stdin.close()
        keeper.wait(50)
        assert keeper.stdout.read() == ""
