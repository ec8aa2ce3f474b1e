"""Resource limits and process attributes that hold whatever runs here next."""

from __future__ import annotations

import ctypes
import resource
import signal
from collections.abc import Mapping
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38


def limit(bounds: Mapping[str, int]) -> None:
    """Set hard and soft limits by their names without ``RLIMIT_``; a lower hard limit that is there stays."""
    for name, value in bounds.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))


def close_the_door() -> bool:
    """No new privileges, no core, no look inside by others of the same user, and death with the parent."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
