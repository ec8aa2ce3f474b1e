"""Time as a value that is handed in, so that rules and tests never ask the operating system."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol


class Clock(Protocol):
    """Where a service asks for the time."""

    def now(self) -> datetime:
        """The current moment, always aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow; for durations, never for dates."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The current moment in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()


@dataclass(slots=True)
class ManualClock:
    """A clock that stands still until it is moved; the twin for tests and simulations."""

    moment: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    _seconds: float = field(default=0.0, init=False)

    def now(self) -> datetime:
        """The moment it was set to."""
        return self.moment

    def monotonic(self) -> float:
        """Seconds it was moved by since it was made."""
        return self._seconds

    def advance(self, **delta: float) -> datetime:
        """Move by a ``timedelta(**delta)`` and return the new moment."""
        step = timedelta(**delta)
        self.moment += step
        self._seconds += step.total_seconds()
        return self.moment


def iso_seconds(moment: datetime) -> str:
    """``2026-11-30T12:45:11Z``: UTC, whole seconds, as AMOS-2.0 files write it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_iso(text: str) -> datetime | None:
    """Read an ISO-8601 moment; a naive one counts as UTC, an unreadable one gives None."""
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def local_zone() -> tzinfo:
    """The zone of the machine, for dates that people read; UTC when the machine does not say."""
    return datetime.now(UTC).astimezone().tzinfo or UTC
