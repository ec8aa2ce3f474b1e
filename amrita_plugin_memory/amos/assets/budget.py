"""How often one user may run tools: so many in a minute, so many in a day."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from amrita_plugin_memory.kernel.clock import Clock, SystemClock
from amrita_plugin_memory.kernel.errors import LimitReached

_MINUTE = 60.0
_DAY = 86_400.0


@dataclass(slots=True)
class RunBudget:
    """Counts runs by user; 0 means no bound. In memory: a restart begins a new day."""

    per_minute: int = 30
    per_day: int = 1000
    clock: Clock = field(default_factory=SystemClock)
    _runs: dict[str, deque[float]] = field(default_factory=dict[str, "deque[float]"])

    def spend(self, actor: str) -> None:
        """Count one run.

        Raises:
            LimitReached: there have been too many.

        """
        now = self.clock.monotonic()
        runs = self._runs.setdefault(actor, deque())
        while runs and runs[0] <= now - _DAY:
            runs.popleft()
        if self.per_day and len(runs) >= self.per_day:
            raise LimitReached(f"今天运行工具已达 {self.per_day} 次上限，请明天再试")
        if self.per_minute and sum(at > now - _MINUTE for at in reversed(runs)) >= self.per_minute:
            raise LimitReached(f"一分钟内运行工具已达 {self.per_minute} 次上限，请稍后再试")
        runs.append(now)
