"""Confine this process, then become the Monty worker: an empty environment, and no way back.

``probe`` does the same without the last step and prints what worked, so that the host knows before it trusts.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final

from . import bounds, bpf, calls, landlock

_LIMITS: Final = {"AS": 768 << 20, "FSIZE": 0, "NOFILE": 32, "CORE": 0, "MEMLOCK": 0}
_PROGRAM_DIRS: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/gnu/store")
_READABLE: Final = ("/usr/share/zoneinfo", "/etc/ld.so.cache", "/dev/null", "/dev/urandom")


def main(binary: str, arguments: list[str]) -> None:
    """Never returns: the process is the worker afterwards, or gone."""
    confine(binary)
    os.execve(binary, [binary, *arguments], {})  # noqa: S606 - a fixed program of ours


def probe(binary: str) -> None:
    """Print the layers as one JSON object."""
    sys.stdout.write(json.dumps(confine(binary)))


def confine(binary: str) -> dict[str, bool]:
    """Put on every layer the kernel has; which of them hold."""
    bounds.limit(_LIMITS)
    held = {"no_new_privs": bounds.close_the_door()}
    held["landlock"] = landlock.confine([binary, *_PROGRAM_DIRS], _READABLE)
    program = calls.worker_filter(os.uname().machine, os.getpid())
    held["seccomp"] = program is not None and bpf.install(program)
    return held
