"""Runs one command and ends it, with all it started, as soon as standard input closes.

The parent holds the other end of that pipe, so that nothing outlives it, not even after a SIGKILL. Started as
``python -m amrita_plugin_memory.demo.keeper COMMAND...`` in a session of its own; imports nothing heavy.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 8.0


def main(command: list[str]) -> int:
    """Run ``command`` with an empty standard input and return its exit code; 137 when it had to be killed."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - the caller is our own code
    threading.Thread(target=_end_when_orphaned, args=(child,), daemon=True).start()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            # The whole group was signalled: the child is ending by itself, and its exit code is still wanted.
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    return child.wait()


def _end_when_orphaned(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):
        pass
    child.terminate()
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)  # whatever the child left behind, and this process too


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
