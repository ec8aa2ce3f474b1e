"""The filters as programs, run by a small interpreter of classic BPF: no kernel is asked."""

from __future__ import annotations

import struct

import pytest

from amrita_plugin_memory.amos.sandbox.inside import bpf, calls

X86, ARM = calls.ARCHITECTURES["x86_64"], calls.ARCHITECTURES["aarch64"]


def verdict(program: bytes, number: int, *args: int, architecture: int = X86) -> int:
    """What the filter says to one system call."""
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *(*args, *[0] * (6 - len(args))))
    at, value = 0, 0
    while True:
        code, yes, no, k = struct.unpack_from("<HBBI", program, at * 8)
        at += 1
        if code == 0x20:
            value = struct.unpack_from("<I", data, k)[0]
        elif code == 0x54:
            value &= k
        elif code == 0x15:
            at += yes if value == k else no
        elif code == 0x35:
            at += yes if value >= k else no
        elif code == 0x06:
            return k


def worker(machine: str = "x86_64") -> bytes:
    program = calls.worker_filter(machine, 77)
    assert program is not None
    return program


def child(machine: str = "x86_64") -> bytes:
    program = calls.child_filter(machine, 77)
    assert program is not None
    return program


@pytest.mark.parametrize(
    ("number", "args"),
    [
        (41, ()),
        (42, ()),
        (57, ()),
        (58, ()),
        (101, ()),
        (310, ()),
        (321, ()),
        (272, ()),
        (438, ()),
        (53, (1, 1)),
        (46, ()),
    ],
)
def test_a_worker_may_not_reach_out(number: int, args: tuple[int, ...]) -> None:
    assert verdict(worker(), number, *args) == bpf.EPERM


def test_a_worker_may_signal_itself_only_start_threads_only_and_ask_its_own_limits_only() -> None:
    assert verdict(worker(), 62, 77, 9) == bpf.ALLOW
    assert verdict(worker(), 62, 1, 9) == bpf.EPERM
    assert verdict(worker(), 62, 2**32 - 1, 9) == bpf.EPERM
    assert verdict(worker(), 234, 1, 1, 9) == bpf.EPERM
    assert verdict(worker(), 56, 0x10000) == bpf.ALLOW
    assert verdict(worker(), 56, 17) == bpf.EPERM
    assert verdict(worker(), 435) == bpf.ENOSYS
    assert verdict(worker(), 302, 0) == bpf.ALLOW
    assert verdict(worker(), 302, 1) == bpf.EPERM
    assert verdict(worker(), 0) == bpf.ALLOW


@pytest.mark.parametrize("number", [2, 257, 41, 42, 56, 57, 59, 62, 87, 101, 157, 202 + 1000, 317, 322, 435, 437])
def test_a_child_may_do_nothing_that_is_not_listed(number: int) -> None:
    assert verdict(child(), number) == bpf.EPERM


def test_a_child_may_map_memory_but_no_code_and_make_pairs_but_send_to_nobody_else() -> None:
    assert verdict(child(), 9, 0, 4096, 3) == bpf.ALLOW
    assert verdict(child(), 9, 0, 4096, 7) == bpf.EPERM
    assert verdict(child(), 10, 0, 4096, 5) == bpf.EPERM
    assert verdict(child(), 53, 1, 0x80001) == bpf.ALLOW
    assert verdict(child(), 53, 1, 2) == bpf.EPERM
    assert verdict(child(), 53, 2, 1) == bpf.EPERM
    assert verdict(child(), 44, 5, 0, 0, 0, 0) == bpf.ALLOW
    assert verdict(child(), 44, 5, 0, 0, 0, 1 << 40) == bpf.EPERM
    assert verdict(child(), 44, 5, 0, 0, 0, 4096) == bpf.EPERM
    assert verdict(child(), 16, 1, 0x5412) == bpf.EPERM
    assert verdict(child(), 72, 1, 4) == bpf.ALLOW
    assert verdict(child(), 72, 1, 1030) == bpf.EPERM


@pytest.mark.parametrize("build", [worker, child])
def test_a_call_of_another_architecture_ends_the_process_and_x32_is_refused(build) -> None:  # type: ignore[no-untyped-def]
    assert verdict(build(), 0, architecture=ARM) == bpf.KILL
    assert verdict(build(), 0, architecture=0x40000003) == bpf.KILL
    assert verdict(build(), 0x40000000) == bpf.EPERM
    assert verdict(build("aarch64"), 63, architecture=ARM) == bpf.ALLOW
    assert verdict(build("aarch64"), 198, architecture=ARM) == bpf.EPERM


def test_an_unknown_machine_has_no_filter() -> None:
    assert calls.worker_filter("riscv64", 1) is None
    assert calls.child_filter("riscv64", 1) is None


@pytest.mark.parametrize("build", [worker, child])
def test_a_filter_fits_the_kernels_bound_and_every_jump_its_byte(build) -> None:  # type: ignore[no-untyped-def]
    for machine in calls.ARCHITECTURES:
        program = build(machine)
        assert len(program) % 8 == 0
        assert len(program) // 8 <= 4096
