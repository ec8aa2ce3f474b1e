"""Who holds a lock file, and whether the holder still lives. The only code that reads or removes a lock file."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

STALE: Final = 10.0  # seconds, as the reference implementation counts
_GRACE: Final = 0.5  # how long a lock file may be empty: between its creation and its first bytes


@dataclass(frozen=True, slots=True)
class Holder:
    """A process, told apart from any other on any machine."""

    pid: int
    host: str
    start: float | None

    @classmethod
    def current(cls) -> Holder:
        """The process that asks."""
        return cls(os.getpid(), socket.gethostname(), started_at(os.getpid()))

    def record(self, token: str) -> bytes:
        """What it writes into a lock file, one JSON object."""
        fields = {"pid": self.pid, "ts": time.time() * 1000, "token": token, "host": self.host, "start": self.start}
        return json.dumps(fields).encode()


def started_at(pid: int) -> float | None:
    """When a process began, in ticks since boot; None where the system does not tell (not Linux, no such process)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return float(stat[stat.rindex(b")") + 2 :].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def is_alive(pid: int) -> bool:
    """True when a process of this id runs on this machine."""
    if pid <= 0:
        return False
    if os.name == "nt":
        return _is_alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _is_alive_on_windows(pid: int) -> bool:
    import ctypes

    kernel32 = cast("Any", ctypes).windll.kernel32
    handle = kernel32.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
    if not handle:
        return False
    kernel32.CloseHandle(handle)
    return True


def _read(file: Path) -> tuple[dict[str, Any] | None, os.stat_result | None]:
    """The record of a lock file (None when empty or unreadable) and its stat (None when it is gone)."""
    try:
        fd = os.open(file, os.O_RDONLY)
    except OSError:
        return None, None
    try:
        return _read_open(fd)
    finally:
        os.close(fd)


def _read_open(fd: int) -> tuple[dict[str, Any] | None, os.stat_result]:
    stat = os.fstat(fd)
    try:
        data = json.loads(os.read(fd, 4096))
    except (ValueError, RecursionError):
        data = None
    return (cast("dict[str, Any]", data) if isinstance(data, dict) else None), stat


def is_ours(file: Path, token: str) -> bool:
    """True when the lock file carries this token."""
    fields, _ = _read(file)
    return bool(token) and fields is not None and fields.get("token") == token


def unlink_if_ours(file: Path, token: str) -> None:
    """Remove the lock file unless it has become another's."""
    if is_ours(file, token):
        file.unlink(missing_ok=True)


def is_abandoned(file: Path) -> bool:
    """True when a lock file is there and its holder is gone."""
    fields, stat = _read(file)
    return stat is not None and _is_abandoned(fields, stat)


def _is_abandoned(fields: dict[str, Any] | None, stat: os.stat_result) -> bool:
    if fields is None:
        return time.time() - stat.st_mtime > _GRACE
    pid, stamp, host = fields.get("pid"), fields.get("ts"), fields.get("host")
    age = time.time() - (stamp / 1000 if isinstance(stamp, int | float) else stat.st_mtime)
    if host is not None and host != socket.gethostname():
        return age > STALE
    if not isinstance(pid, int) or not is_alive(pid):
        return True
    if "token" not in fields:
        return age > STALE
    start, now = fields.get("start"), started_at(pid)
    return start is not None and now is not None and start != now


def clear_if_abandoned(file: Path) -> bool:
    """Remove an abandoned lock; True when the path may be free now.

    Of several waiters that see it only one removes it, and never a lock made since: they compete for an advisory lock
    on the abandoned file itself, which the system frees when one of them dies, and judge again what they hold.
    """
    if not is_abandoned(file):
        return not file.exists()
    try:
        fd = os.open(file, os.O_RDWR)
    except OSError:
        return not file.exists()
    try:
        return _flock(fd) and _unlink_open(file, fd)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)


def _unlink_open(file: Path, fd: int) -> bool:
    fields, held = _read_open(fd)
    named = file.stat()
    if (held.st_ino, held.st_dev) != (named.st_ino, named.st_dev) or not _is_abandoned(fields, held):
        return False
    if os.name == "nt":  # an open file cannot be deleted there
        os.close(fd)
    file.unlink(missing_ok=True)
    return True


def _flock(fd: int) -> bool:
    if os.name == "nt":
        return True
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
