"""A small assembler for seccomp filters: rules in, a classic BPF program out. Pure apart from `install`.

Layout of what a filter reads (``struct seccomp_data``): number at 0, architecture at 4, arguments at 16, eight bytes
each, low half first on the two little-endian architectures this project knows.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
EPERM: Final = 0x00050001
ENOSYS: Final = 0x00050026

_LD: Final = 0x20
_AND: Final = 0x54
_JEQ: Final = 0x15
_JGE: Final = 0x35
_RET: Final = 0x06
_PR_SET_SECCOMP: Final = 22
_MODE_FILTER: Final = 2


@dataclass(frozen=True, slots=True)
class Test:
    """``(argument & mask) == value`` over the low half of an argument, or over the high half."""

    argument: int
    value: int
    mask: int = 0xFFFFFFFF
    high: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """What a system call gets: ``then`` when all tests hold, ``otherwise`` when one does not."""

    number: int
    then: int
    tests: tuple[Test, ...] = ()
    otherwise: int = EPERM


def assemble(architecture: int, rules: Sequence[Rule], default: int) -> bytes:
    """The program; a call of another architecture ends the process, one with the x32 bit is refused."""
    program = [_op(_LD, 4), _op(_JEQ, architecture, 1, 0), _op(_RET, KILL), _op(_LD, 0)]
    program += [_op(_JGE, 0x40000000, 0, 1), _op(_RET, EPERM)]
    for rule in rules:
        block = _block(rule)
        program += [_op(_LD, 0), _op(_JEQ, rule.number, 0, len(block)), *block]
    return b"".join([*program, _op(_RET, default)])


def install(program: bytes) -> bool:
    """Put this thread and all its descendants under the program; needs no-new-privileges. False when refused."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong]
    return libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, header, 0, 0) == 0


def _block(rule: Rule) -> list[bytes]:
    code: list[bytes] = []
    for place, test in enumerate(rule.tests):
        left = 3 * (len(rule.tests) - place - 1) + 1  # instructions to skip to reach the last return
        at = 16 + 8 * test.argument + (4 if test.high else 0)
        code += [_op(_LD, at), _op(_AND, test.mask), _op(_JEQ, test.value, 0, left)]
    code.append(_op(_RET, rule.then))
    if rule.tests:
        code.append(_op(_RET, rule.otherwise))
    return code


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)
