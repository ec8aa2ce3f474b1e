"""How a worker is started: through the launcher where the kernel can confine it, plainly elsewhere."""

from __future__ import annotations

import json
import logging
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amrita_plugin_memory.amos.errors import SandboxUnavailable

_SANDBOX: Final = Path(__file__).resolve().parent.parent
_LAYERS: Final = ("no_new_privs", "landlock", "seccomp")
_PROBE_SECONDS: Final = 20.0
log = logging.getLogger("amrita_memory.amos")


@dataclass(frozen=True, slots=True)
class Worker:
    """What to start; ``confined`` says whether the kernel holds it, ``folder`` is removed on `close`."""

    path: str
    confined: bool
    folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove the launcher's file."""
        if self.folder is not None:
            self.folder.cleanup()


def prepare(*, required: bool) -> Worker:
    """Find the interpreter and find out what the kernel offers. Blocks for one short process.

    Raises:
        SandboxUnavailable: no interpreter, or ``required`` and the kernel cannot confine it.

    """
    binary = _binary()
    missing = _missing_layers(binary) if sys.platform == "linux" else ["linux"]
    launched = None if missing else _launcher(binary)
    if launched is not None:
        return launched
    if required:
        raise SandboxUnavailable("系统内核不能限制沙箱进程，而配置要求必须限制，工具没有运行")
    log.warning("sandbox workers run without kernel layers: %s", ", ".join(missing or ["launcher"]))
    return Worker(binary, confined=False)


def _launcher(binary: str) -> Worker | None:
    """The file that stands for the worker; None when it cannot be executed, as on a disk mounted noexec."""
    folder = tempfile.TemporaryDirectory(prefix="amos-sandbox-")
    path = Path(folder.name, "worker")
    path.write_text(f'#!/bin/sh\nexec {shlex.join(_command(f"main({binary!r}, sys.argv[1:])"))} "$@"\n', "utf-8")
    path.chmod(0o700)
    worker = Worker(str(path), True, folder)
    try:
        done = subprocess.run([worker.path, "--version"], capture_output=True, timeout=_PROBE_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        done = None
    if done is None or done.returncode:
        worker.close()
        return None
    return worker


def holds(pid: int | None) -> bool:
    """True when the kernel says that this process has no way to new privileges and is under a filter."""
    if pid is None:
        return False
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return False
    return "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status


def _binary() -> str:
    try:
        from pydantic_monty._binary import find_monty_binary

        path = Path(find_monty_binary()).resolve(strict=True)
    except (ImportError, OSError) as error:
        raise SandboxUnavailable("没有找到沙箱解释器，请安装 pydantic-monty，工具没有运行") from error
    return str(path)


def _missing_layers(binary: str) -> list[str]:
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and our own text
            _command(f"probe({binary!r})"), capture_output=True, timeout=_PROBE_SECONDS, env={}, check=False, cwd="/"
        )
        held = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ["launcher"]
    return [name for name in _LAYERS if not held.get(name)]


def _command(call: str) -> list[str]:
    text = f"import sys; sys.path.insert(0, {str(_SANDBOX)!r}); from inside.launcher import main, probe; {call}"
    return [os.path.realpath(sys.executable), "-I", "-S", "-B", "-c", text]  # a link may lead into a venv without lib
