"""The arena: one disposable host process that lets attacks loose in a sandbox and writes down what it sees.

``python -m support.attacks.arena RUNNER ID…`` prints one JSON line per attack; ``features`` in place of ids prints the
features. RUNNER is a function of ``support.sandboxed``. A host that dies is seen by whoever started it. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support import sandboxed

from . import ATTACKS, FEATURES, Attack

GRACE, HOST_MB, SYSTEM_MB, ANSWER, PRINTED = 2.5, 150, 1500, 1 << 20, 256 << 10
SECRETS = ("arena-env-77c1", "arena-file-9b0e", "arena-memory-5d2f")
SETTLE = 0.4  # seconds to let what is left show itself
Runner = Callable[[str, dict[str, Any], float, bool], Any]


class Arena:
    """Traps around one attack: a secret file, a canary path, listeners, captured output, counted processes."""

    def __init__(self, run: Runner) -> None:
        self._run = run
        self._folder = Path(tempfile.mkdtemp(prefix="arena"))
        self.secret, self.canary = self._folder / "secret", self._folder / "canary"
        self.secret.write_text(SECRETS[1])
        self._open = os.open(self.secret, os.O_RDONLY)
        os.set_inheritable(self._open, True)
        self.in_memory = SECRETS[2] * 2
        self.hits: list[str] = []
        self.signals: list[int] = []
        self.port = self._listen()
        for number in (signal.SIGTERM, signal.SIGUSR2):
            signal.signal(number, lambda n, _: self.signals.append(n))
        with contextlib.suppress(Exception):
            run("__return_value__ = 1\n", {}, 10.0, False)

    def judge(self, attack: Attack) -> dict[str, Any]:
        """Run one attack and name the forbidden effects that were seen."""
        self.hits.clear()
        self.signals.clear()
        params = {
            "secret": str(self.secret),
            "canary": str(self.canary),
            "host": os.getpid(),
            "port": self.port,
            "nested": [],
        }
        before = set(_descendants()) | sandboxed.known_pids()
        seen: set[str] = set()
        with _watched() as memory, _captured() as printed:
            answer, error, spent = self._fight(attack, params)
        said = _said(answer, error, seen)
        left, burnt = _after(before)
        seen |= {"late"} if spent > attack.seconds + GRACE else set()
        seen |= {"memory"} if memory.host > HOST_MB or memory.system > SYSTEM_MB else set()
        seen |= {"orphan"} if left else set()
        seen |= {"burn"} if burnt else set()
        seen |= {"net"} if self.hits or "arena-net" in said else set()
        seen |= {"dead"} if self.signals else set()
        seen |= {"flood"} if printed.size > PRINTED else set()
        said += printed.text()
        seen |= {"leak"} if any(secret in said for secret in SECRETS) else set()
        seen |= {"bleed"} if "BLEED" in said or params["nested"] else set()
        seen |= {"won"} if answer == "WON" else set()
        seen |= self._touched()
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return {
            "id": attack.id,
            "seen": sorted(seen & attack.forbidden),
            "said": said[:160],
            "seconds": round(spent, 2),
        }

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _fight(self, attack: Attack, params: dict[str, Any]) -> tuple[Any, BaseException | None, float]:
        answer, error, begin = None, None, time.monotonic()
        for part in attack.parts:
            begin = time.monotonic()
            try:
                answer = self._run(part, params, attack.seconds, attack.network)
            except BaseException as e:
                answer, error = None, e
        return answer, error, time.monotonic() - begin

    def _touched(self) -> set[str]:
        changed = self.canary.exists() or not self.secret.exists() or self.secret.read_text() != SECRETS[1]
        self.canary.unlink(missing_ok=True)
        Path(tempfile.gettempdir(), "arena_bleed").unlink(missing_ok=True)
        self.secret.write_text(SECRETS[1])
        return {"write"} if changed else set()

    def _listen(self) -> int:
        tcp, udp, own = socket.socket(), socket.socket(type=socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)
        tcp.bind(("127.0.0.1", 0))
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        own.bind(f"\0arena-{port}")
        for listener in (tcp, own):
            listener.listen(8)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        threading.Thread(
            target=lambda: [self.hits.append("udp") for _ in iter(lambda: udp.recv(9), None)], daemon=True
        ).start()
        return port

    def _accept(self, listener: socket.socket) -> None:
        while True:
            peer, _ = listener.accept()
            self.hits.append("connected")
            with contextlib.suppress(OSError):
                peer.settimeout(0.3)
                peer.recv(2000)
                peer.send(b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\narena-net")
            peer.close()


class _Memory:
    host = system = 0


@contextlib.contextmanager
def _watched() -> Iterator[_Memory]:
    memory, stop = _Memory(), threading.Event()
    host, system = _resident(), _available()

    def watch() -> None:
        while not stop.wait(0.02):
            memory.host = max(memory.host, _resident() - host)
            memory.system = max(memory.system, system - _available())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        stop.set()
        thread.join()


class _Printed:
    def __init__(self) -> None:
        self.size, self._kept = 0, bytearray()

    def drain(self, fd: int) -> None:
        while data := os.read(fd, 1 << 16):
            self.size += len(data)
            self._kept += data[: max(PRINTED - len(self._kept), 0)]

    def text(self) -> str:
        return self._kept.decode("latin1")


@contextlib.contextmanager
def _captured() -> Iterator[_Printed]:
    printed, (reader, writer) = _Printed(), os.pipe()
    threading.Thread(target=printed.drain, args=(reader,), daemon=True).start()
    sys.stdout.flush()
    saved = [os.dup(1), os.dup(2)]
    for fd in (1, 2):
        os.dup2(writer, fd)
    os.close(writer)
    try:
        yield printed
    finally:
        for fd, old in zip((1, 2), saved, strict=True):
            os.dup2(old, fd)
            os.close(old)


def _said(answer: Any, error: BaseException | None, seen: set[str]) -> str:
    """The answer or the error as text; what is wrong with its form goes into ``seen``."""
    if error is None:
        fault = _fault(answer)
        seen |= {"type"} if fault else set()
        return repr(answer)[:200_000] if fault != "deep" else "<deep>"
    box: list[str] = []
    reader = threading.Thread(target=lambda: box.append(str(error)), daemon=True)
    reader.start()
    reader.join(1)
    if not isinstance(error, Exception) or not box or len(box[0]) > 16_384:
        seen.add("error")
    return f"{type(error).__name__}: {box[0][:200_000] if box else '<no text>'}"


def _fault(value: Any, depth: int = 0) -> str:
    if depth > 64:
        return "deep"
    if value is None or type(value) in (bool, int):
        return ""
    if type(value) is float:
        return "" if value == value and abs(value) != float("inf") else "nan"
    if type(value) is str:
        return "big" if len(value) > ANSWER else "" if value.encode("utf-8", "ignore").decode() == value else "half"
    if type(value) is list:
        return next(filter(None, (_fault(item, depth + 1) for item in value)), "")
    if type(value) is dict:
        items = (_fault(part, depth + 1) for pair in value.items() for part in pair)
        return "key" if any(type(key) is not str for key in value) else next(filter(None, items), "")
    return type(value).__name__


def _after(before: set[int]) -> tuple[set[int], bool]:
    """Processes that are there now and were not, and whether anything still computes."""
    time.sleep(SETTLE)
    first, mine = _descendants(), sum(os.times()[:2])
    time.sleep(SETTLE)
    second = _descendants()
    burnt = sum(os.times()[:2]) - mine > 0.25 or any(cpu - first.get(pid, 0) > 20 for pid, cpu in second.items())
    return set(second) - before - sandboxed.known_pids(), burnt


def _descendants() -> dict[int, int]:
    """CPU ticks of every living process below this one; orphans come back to it."""
    stats: dict[int, tuple[int, str, int]] = {}
    for entry in filter(str.isdigit, (path.name for path in Path("/proc").iterdir())):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
            stats[int(entry)] = (int(fields[1]), fields[0], int(fields[11]) + int(fields[12]))
    found: dict[int, int] = {}
    waiting = [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for pid, (above, state, cpu) in stats.items():
            if above == parent and state != "Z" and pid not in found:
                found[pid] = cpu
                waiting.append(pid)
    return found


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20


def _available() -> int:
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    return int(line.split()[1]) >> 10


def features(run: Runner) -> Iterator[dict[str, Any]]:
    for name, code, wanted in FEATURES:
        try:
            got = run(code, {"x": 1}, 10.0, False)
        except Exception as error:
            got = f"{type(error).__name__}: {error}"[:200]
        yield {"id": name, "ok": got == wanted, "said": repr(got)[:120]}


def main(runner: str, wanted: list[str]) -> None:
    run: Runner = getattr(sandboxed, runner)
    if wanted == ["features"]:
        for found in features(run):
            os.write(1, (json.dumps(found) + "\n").encode())
    else:
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        arena = Arena(run)
        for attack in (attack for attack in ATTACKS if attack.id in wanted):
            line = json.dumps(arena.judge(attack)) + "\n"
            os.write(1, line.encode())
        arena.close()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
