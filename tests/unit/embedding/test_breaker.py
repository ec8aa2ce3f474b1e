"""An outage costs the first call its time; the others are answered at once, and it heals by itself."""

from __future__ import annotations

import asyncio

import pytest

from amrita_plugin_memory.embedding.service.breaker import FIRST_PAUSE, LONGEST_PAUSE, Breaker
from amrita_plugin_memory.embedding.service.faults import Kind, ServiceFault
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable


class Line:
    """Calls through a breaker, counted."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.breaker = Breaker(self.clock)
        self.calls = 0

    def call(self, kind: Kind | None = None, retry_after: float | None = None) -> None:
        with self.breaker.guard():
            self.calls += 1
            if kind is not None:
                raise ServiceFault(kind, base="http://e.example", detail="连接被拒绝", retry_after=retry_after)

    def fails(self, kind: Kind = "unreachable", retry_after: float | None = None) -> str:
        with pytest.raises(EmbeddingUnavailable) as caught:
            self.call(kind, retry_after)
        return str(caught.value)


def test_after_an_outage_calls_are_refused_with_the_same_sentence_and_no_call() -> None:
    line = Line()
    sentence = line.fails()
    assert line.fails() == sentence
    assert line.calls == 1


def test_when_the_pause_is_over_one_call_probes_and_success_heals() -> None:
    line = Line()
    line.fails()
    line.clock.advance(seconds=FIRST_PAUSE)
    line.call()
    line.call()
    assert line.calls == 3


def test_while_probes_fail_the_pause_doubles_up_to_a_minute() -> None:
    line = Line()
    line.fails()
    for pause in (5, 10, 20, 40, 60, 60):
        line.clock.advance(seconds=pause - 0.1)
        before = line.calls
        line.fails()
        assert line.calls == before
        line.clock.advance(seconds=0.1)
        line.fails()
        assert line.calls == before + 1
    assert LONGEST_PAUSE == 60


def test_a_longer_retry_after_is_kept() -> None:
    line = Line()
    line.fails("busy", retry_after=100)
    line.clock.advance(seconds=99)
    line.fails()
    assert line.calls == 1


def test_a_refused_text_opens_nothing() -> None:
    line = Line()
    line.fails("request")
    line.fails("vectors")
    line.call()
    assert line.calls == 3


async def test_while_one_call_probes_the_others_are_refused_and_a_cancelled_probe_frees_the_way() -> None:
    line = Line()
    line.fails()
    line.clock.advance(seconds=FIRST_PAUSE)

    async def probe() -> None:
        with line.breaker.guard():
            await asyncio.Event().wait()

    probing = asyncio.ensure_future(probe())
    await asyncio.sleep(0)
    line.fails()
    assert line.calls == 1
    probing.cancel()
    await asyncio.gather(probing, return_exceptions=True)
    line.call()
    assert line.calls == 2


async def test_failures_of_the_same_moment_count_once() -> None:
    line = Line()
    go = asyncio.Event()

    async def call() -> None:
        with line.breaker.guard():
            await go.wait()
            raise ServiceFault("timeout", base="http://e.example")

    calls = [asyncio.ensure_future(call()) for _ in range(5)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*calls, return_exceptions=True)
    line.clock.advance(seconds=FIRST_PAUSE)
    line.call()
    assert line.calls == 1
