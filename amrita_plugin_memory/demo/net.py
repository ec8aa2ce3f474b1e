"""Loopback ports: find free ones, and tell whether somebody listens."""

from __future__ import annotations

import socket
from typing import Final

LOOPBACK: Final = "127.0.0.1"


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody used a moment ago.

    Another process may take it before the caller does; whoever listens must be ready for that.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_taken(port: int) -> bool:
    """True when the port cannot be listened on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Without this a port of a server that just ended looks taken for a minute (TIME_WAIT).
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False
