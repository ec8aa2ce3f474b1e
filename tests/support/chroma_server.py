"""A real `chroma run` server as a process on a free loopback port, for tests marked ``server``."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@dataclass
class ChromaServer:
    """``start`` and ``kill`` may be called again and again; data and port stay."""

    directory: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    def start(self, *, patience: float = 40) -> None:
        command = shutil.which("chroma", path=f"{sysconfig.get_path('scripts')}:{Path(sys.executable).parent}")
        if command is None:
            raise FileNotFoundError("the chroma command comes with chromadb and is not there")
        log = (self.directory / "server.log").open("ab")
        arguments = ["run", "--path", str(self.directory / "data"), "--host", "127.0.0.1", "--port", str(self.port)]
        with log:
            self._process = subprocess.Popen([command, *arguments], stdout=log, stderr=log, cwd=self.directory)
        self._wait_until_ready(time.monotonic() + patience)

    def _wait_until_ready(self, deadline: float) -> None:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                raise RuntimeError(f"chroma ended with {self._process.returncode}, see {self.directory}/server.log")
            with contextlib.suppress(urllib.error.URLError, OSError):
                opener.open(f"http://127.0.0.1:{self.port}/api/v2/heartbeat", timeout=2).close()
                return
            time.sleep(0.05)
        self.kill()
        raise TimeoutError("chroma was not ready in time")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def running_chroma(directory: Path) -> Iterator[ChromaServer]:
    server = ChromaServer(directory)
    server.start()
    try:
        yield server
    finally:
        server.kill()
