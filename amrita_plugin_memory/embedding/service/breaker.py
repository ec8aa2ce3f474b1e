"""A circuit breaker: after an outage, answer at once for a while instead of making every chat reply wait for it."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable

from .faults import ServiceFault

FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 60.0
_log = logging.getLogger("amrita_memory.embedding")


class Breaker:
    """Closed: calls pass. Open: refused with the last sentence. When the pause is over, one call probes.

    The pause doubles from FIRST_PAUSE to LONGEST_PAUSE seconds while probes fail, and honours a longer Retry-After.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sentence = ""
        self._until = 0.0
        self._failures = 0
        self._probing = False

    @contextmanager
    def guard(self) -> Generator[None]:
        """Run one call inside.

        Raises:
            EmbeddingUnavailable: at once, while open or while another call probes.

        """
        opened = self._failures
        if opened:
            if self._probing or self._clock.monotonic() < self._until:
                raise EmbeddingUnavailable(self._sentence)
            self._probing = True
        try:
            yield
        except ServiceFault as fault:
            self._after(fault, opened)
            raise
        else:
            self._heal()
        finally:
            if opened:
                self._probing = False

    def _after(self, fault: ServiceFault, opened: int) -> None:
        if not fault.outage:
            self._heal()
            return
        if self._failures > opened:
            return  # another call of the same moment has opened it already
        pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        if not self._failures:
            _log.warning("%s", fault)
        self._failures += 1
        self._sentence = str(fault)
        self._until = self._clock.monotonic() + max(pause, min(fault.retry_after or 0.0, 10 * LONGEST_PAUSE))

    def _heal(self) -> None:
        if self._failures:
            _log.info("嵌入服务恢复应答")
        self._failures = 0
