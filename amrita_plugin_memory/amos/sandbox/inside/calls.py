"""Numbers of system calls on the two architectures that are known, and the two filters made of them. Pure.

`worker_filter` is a deny list: a Monty worker is a foreign program whose needs may grow. `child_filter` is an allow
list: the CPython child needs what is written here and nothing else. Numbers: Linux ``unistd_64.h`` and
``asm-generic/unistd.h``.
"""

from __future__ import annotations

from typing import Final

from .bpf import ALLOW, ENOSYS, EPERM, Rule, Test, assemble

ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_NUMBERS: Final[dict[str, tuple[int | None, int | None]]] = {  # name: (x86_64, aarch64)
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "poll": (7, None), "ppoll": (271, 73),
    "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "ioctl": (16, 29),
    "readv": (19, 65), "writev": (20, 66), "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233),
    "nanosleep": (35, 101), "getpid": (39, 172), "exit": (60, 93), "uname": (63, 160), "fcntl": (72, 25),
    "gettimeofday": (96, 169), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177), "getppid": (110, 173), "sigaltstack": (131, 132), "gettid": (186, 178),
    "futex": (202, 98), "sched_getaffinity": (204, 123), "restart_syscall": (219, 128), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "exit_group": (231, 94), "epoll_wait": (232, None),
    "epoll_ctl": (233, 21), "epoll_pwait": (281, 22), "epoll_create1": (291, 20), "getrandom": (318, 278),
    "rseq": (334, 293), "epoll_pwait2": (441, 441), "socketpair": (53, 199), "sendto": (44, 206),
    "recvfrom": (45, 207), "tgkill": (234, 131), "kill": (62, 129), "clone": (56, 220), "clone3": (435, 435),
    "prlimit64": (302, 261),
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "bind": (49, 200), "listen": (50, 201),
    "accept4": (288, 242), "sendmsg": (46, 211), "sendmmsg": (307, 269), "fork": (57, None), "vfork": (58, None),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "bpf": (321, 280), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "userfaultfd": (323, 282), "unshare": (272, 97), "setns": (308, 268),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "perf_event_open": (298, 241),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "personality": (135, 92), "quotactl": (179, 60), "acct": (163, 89), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "move_pages": (279, 239), "migrate_pages": (256, 238),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272), "shmget": (29, 194),
    "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191),
    "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
}  # fmt: skip
_FREE_TO_CHILD: Final = (
    "read", "write", "close", "fstat", "poll", "ppoll", "lseek", "munmap", "brk", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "readv", "writev", "sched_yield", "mremap", "madvise", "nanosleep", "getpid", "exit", "uname",
    "gettimeofday", "getuid", "geteuid", "getgid", "getegid", "getppid", "sigaltstack", "gettid", "futex",
    "sched_getaffinity", "restart_syscall", "clock_gettime", "clock_getres", "clock_nanosleep", "exit_group",
    "epoll_wait", "epoll_ctl", "epoll_pwait", "epoll_create1", "epoll_pwait2", "getrandom", "rseq", "recvfrom",
)  # fmt: skip
_NEVER_TO_WORKER: Final = tuple(_NUMBERS)[tuple(_NUMBERS).index("socket") :]
_PROT_EXEC: Final = 4
_CLONE_THREAD: Final = 0x10000


def worker_filter(machine: str, pid: int) -> bytes | None:
    """For a Monty worker: no sockets, no processes, no signals to others; threads stay. None on another machine."""
    if machine not in ARCHITECTURES:
        return None
    at = _column(machine)
    rules = [Rule(number, EPERM) for name in _NEVER_TO_WORKER if (number := _NUMBERS[name][at]) is not None]
    rules += [_rule("socketpair", at, EPERM), _rule("clone3", at, ENOSYS), _to_itself("kill", at, pid)]
    rules += [_to_itself("tgkill", at, pid), _rule("prlimit64", at, ALLOW, Test(0, 0))]
    rules.append(_rule("clone", at, ALLOW, Test(0, _CLONE_THREAD, _CLONE_THREAD)))
    return assemble(ARCHITECTURES[machine], rules, ALLOW)


def child_filter(machine: str, pid: int) -> bytes | None:
    """For the CPython child: memory, time, its open descriptors, an event loop. None on another machine."""
    if machine not in ARCHITECTURES:
        return None
    at = _column(machine)
    rules = [Rule(number, ALLOW) for name in _FREE_TO_CHILD if (number := _NUMBERS[name][at]) is not None]
    rules += [_rule(name, at, ALLOW, Test(2, 0, _PROT_EXEC)) for name in ("mmap", "mprotect")]
    rules += [_rule("ioctl", at, ALLOW, Test(1, 0x5421)), _rule("fcntl", at, ALLOW, Test(1, 0, 0xFFFFFFF8))]
    rules.append(_rule("socketpair", at, ALLOW, Test(0, 1), Test(1, 1, 0xF)))
    rules.append(_rule("sendto", at, ALLOW, Test(4, 0), Test(4, 0, high=True)))
    rules.append(_to_itself("tgkill", at, pid))
    return assemble(ARCHITECTURES[machine], rules, EPERM)


def _column(machine: str) -> int:
    return 0 if machine == "x86_64" else 1


def _rule(name: str, at: int, then: int, *tests: Test) -> Rule:
    number = _NUMBERS[name][at]
    return Rule(-1 & 0xFFFFFFFF if number is None else number, then, tests)


def _to_itself(name: str, at: int, pid: int) -> Rule:
    return _rule(name, at, ALLOW, Test(0, pid))
