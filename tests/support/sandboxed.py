"""The sandbox behind plain functions, for harnesses that run attacks in disposable host processes.

``run_monty`` and ``run_process`` use the engines; ``run_nowhere`` is the canary: the same CPython child without any
confinement, which a suite that bites must find unsafe.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from amrita_plugin_memory.amos.sandbox import Sandbox, SandboxOptions


class _Loop:
    """One event loop in a thread, so that workers outlive a call."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._boxes: dict[str, Sandbox] = {}

    def run(self, engine: str, code: str, params: dict[str, Any], timeout: float, network: bool) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True).start()
        box = self._boxes.get(engine)
        if box is None:
            options = SandboxOptions(engine=engine, allow_network=True, hosts=("*",), ports=frozenset(range(1, 65536)))  # type: ignore[arg-type]
            box = self._boxes[engine] = Sandbox(options, {})
        work = asyncio.run_coroutine_threadsafe(
            box.run(code, params, timeout=timeout, allow_network=network), self._loop
        )
        return work.result().value


_LOOP = _Loop()


def run_monty(code: str, params: dict[str, Any], timeout: float, allow_network: bool) -> Any:
    return _LOOP.run("monty", code, params, timeout, allow_network)


def run_process(code: str, params: dict[str, Any], timeout: float, allow_network: bool) -> Any:
    return _LOOP.run("process", code, params, timeout, allow_network)


def run_nowhere(code: str, params: dict[str, Any], timeout: float, allow_network: bool) -> Any:
    """An unconfined child: same convention, same time limit, nothing else."""
    text = (
        "import json,sys\nq=json.load(sys.stdin)\nn={'params':q['params']}\nexec(q['code'],n)\n"
        "v=n['run'](n['params']) if 'run' in n else n.get('__return_value__')\nprint('\\n=>'+json.dumps(v))"
    )
    request = json.dumps({"code": code, "params": params})
    child = subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        close_fds=False,
    )
    try:
        out, err = child.communicate(request, timeout=timeout)
    finally:
        child.kill()
    if "\n=>" not in out:
        raise RuntimeError(err[-500:])
    return json.loads(out.rpartition("\n=>")[2])


def known_pids() -> set[int]:
    """Workers of the pool, which may outlive a call: processes that run the interpreter."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "comm").read_text().strip() == "monty":
                    found.add(int(entry.name))
            except OSError:
                continue
    return found
