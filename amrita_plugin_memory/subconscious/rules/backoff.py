"""When a cycle runs: a state machine of one target. Pure: states and moments in, states out.

Each message pushes the run away: ``delay = min(base * multiplier ** (penalty - 1), cap)``. Success resets the penalty,
failure keeps it. Nothing here knows a timer or a clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """The three settings. ``base`` and ``cap`` are in minutes; a cap below the base counts as the base."""

    base: float = 30
    multiplier: float = 1.5
    cap: float = 1440

    def delay(self, penalty: int) -> timedelta:
        """How long after a message the run is due, for the penalty that message made; never overflows."""
        base, cap = max(self.base, 0.0), max(self.cap, self.base, 0.0)
        if penalty <= 1 or self.multiplier <= 1 or base == 0:
            return timedelta(minutes=base)
        # Compare exponents, since multiplier ** penalty leaves the floats near a penalty of 1,750.
        if (penalty - 1) * math.log(self.multiplier) >= math.log(cap / base):
            return timedelta(minutes=cap)
        return timedelta(minutes=min(base * self.multiplier ** (penalty - 1), cap))


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a target stands: how often it was pushed away, and when it is due (None: idle)."""

    penalty: int = 0
    due: datetime | None = None

    def spoke(self, now: datetime, backoff: Backoff) -> Plan:
        """The target said something: one more penalty, and a later run."""
        penalty = self.penalty + 1
        return Plan(penalty, now + backoff.delay(penalty))

    def succeeded(self) -> Plan:
        """A run came to its end: back to idle, penalty gone."""
        return Plan()

    def failed(self) -> Plan:
        """A run failed: back to idle, penalty kept, so that the next message waits at least as long."""
        return replace(self, due=None)

    def resumed(self, now: datetime, grace: timedelta) -> Plan:
        """After a restart: a run that was missed meanwhile happens once, ``grace`` from now."""
        if self.due is None or self.due > now + grace:
            return self
        return replace(self, due=now + grace)
