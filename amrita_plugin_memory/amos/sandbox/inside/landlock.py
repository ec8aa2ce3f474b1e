"""Landlock: this process may read and execute the given places of the file system, and nothing else of it.

Through the raw system calls, whose numbers and structures are stable kernel interface and the same on every
architecture (444–446; ``linux/landlock.h``).
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from typing import Final

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _READ_FILE, _READ_DIR = 1, 4, 8
_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}  # how many file system rights an ABI knows
_RIGHTS_LATER: Final = 16
_TCP: Final = 3
_SCOPE_ALL: Final = 3


def abi() -> int:
    """The version the kernel speaks; 0 when it has no Landlock, or a filter hides it."""
    return max(_call(_CREATE, None, 0, 1), 0)


def confine(execute: Iterable[str], read: Iterable[str]) -> bool:
    """Keep this process and its descendants to these places; needs no-new-privileges. False when not possible."""
    version = abi()
    if version == 0:
        return False
    fs = (1 << _RIGHTS.get(version, _RIGHTS_LATER)) - 1
    attributes = struct.pack("<QQQ", fs, _TCP if version >= 4 else 0, _SCOPE_ALL if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _call(_CREATE, attributes, size, 0)
    if ruleset < 0:
        return False
    try:
        for path in execute:
            _allow(ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR)
        for path in read:
            _allow(ruleset, path, _READ_FILE | _READ_DIR)
        return _call(_RESTRICT, ruleset, 0, 0) == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = rights if os.path.isdir(path) else rights & ~_READ_DIR  # noqa: PTH112 - started without pathlib
        _call(_ADD, ruleset, 1, struct.pack("<Qi", allowed, fd), 0)
    finally:
        os.close(fd)


def _call(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(x) if isinstance(x, int) else ctypes.c_char_p(x) for x in arguments]
    return int(libc.syscall(ctypes.c_long(number), *given))
