"""How far a long job is, as a value that a terminal, a log or a JSON line can show. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from amrita_plugin_memory.kernel.clock import Clock


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of ``total`` rows; ``rate`` in rows a second and ``remaining`` in seconds, None until they are known."""

    stage: str
    done: int
    total: int
    rate: float | None = None
    remaining: float | None = None


Report: TypeAlias = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Report to nobody."""


@dataclass(slots=True)
class Meter:
    """Counts rows against a clock and reports after each step. Rows that cost nothing do not speed up the rate."""

    stage: str
    total: int
    clock: Clock
    report: Report = silent
    done: int = field(default=0, init=False)
    _worked: int = field(default=0, init=False)
    _begun: float | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin to measure."""
        self._begun = self.clock.monotonic()
        self._tell()

    def step(self, rows: int, *, worked: int | None = None) -> None:
        """``rows`` more are done, of which ``worked`` (all by default) took the job's real work."""
        self.done += rows
        self._worked += rows if worked is None else worked
        self.total = max(self.total, self.done)
        self._tell()

    def _tell(self) -> None:
        seconds = self.clock.monotonic() - self._begun if self._begun is not None else 0.0
        rate = self._worked / seconds if seconds > 0 and self._worked else None
        remaining = (self.total - self.done) / rate if rate else None
        self.report(Progress(self.stage, self.done, self.total, rate, remaining))
