import asyncio
import json
import threading

import pytest

from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import (
    AmritaMemoryError,
    InvalidInput,
    NotFound,
    SpaceMismatch,
    StoreUnavailable,
)
from amrita_plugin_memory.vectordb.calls import Calls, Missing, Stale, TooSlow, Torn, translate


@pytest.fixture
def gate():
    """Calls that block until the test ends."""
    event = threading.Event()
    yield event
    event.set()


def calls(**options):
    return Calls("本地向量库", **{"timeout": 0.05, "clock": ManualClock(), **options})


async def settled():
    for _ in range(200):
        if not [t for t in threading.enumerate() if t.name == "amrita-memory-store"]:
            break
        await asyncio.sleep(0.005)
    await asyncio.sleep(0)


async def test_the_loop_goes_on_while_a_call_blocks(gate):
    slow = asyncio.create_task(calls(timeout=5).run(gate.wait))
    await asyncio.sleep(0)
    gate.set()
    assert await slow is True


async def test_a_call_that_never_answers_is_bounded_and_says_so_plainly(gate):
    with pytest.raises(TooSlow, match="没有及时回应"):
        await calls().run(gate.wait)


async def test_after_a_timeout_the_store_is_left_alone_then_asked_once_and_trusted_again(gate):
    clock = ManualClock()
    asked = []
    bounded = calls(clock=clock, pause=5)
    with pytest.raises(TooSlow):
        await bounded.run(gate.wait)

    with pytest.raises(StoreUnavailable):
        await bounded.run(lambda: asked.append("too early"))
    clock.advance(seconds=6)
    probe = asyncio.create_task(bounded.run(lambda: asked.append("probe"), limit=5))
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable):
        await bounded.run(lambda: asked.append("beside the probe"))
    await probe
    await bounded.run(lambda: asked.append("again"), limit=5)

    assert asked == ["probe", "again"]


async def test_a_probe_that_hangs_closes_the_way_again(gate):
    clock = ManualClock()
    bounded = calls(clock=clock, pause=5)
    for _ in range(3):
        with pytest.raises(TooSlow):
            await bounded.run(gate.wait)
        with pytest.raises(StoreUnavailable):
            await bounded.run(lambda: None)
        clock.advance(seconds=6)


async def test_a_probe_that_is_cancelled_does_not_bar_the_next(gate):
    clock = ManualClock()
    bounded = calls(clock=clock, pause=5)
    with pytest.raises(TooSlow):
        await bounded.run(gate.wait)
    clock.advance(seconds=6)
    probe = asyncio.create_task(bounded.run(gate.wait, limit=60))
    await asyncio.sleep(0.01)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await bounded.run(lambda: 7, limit=5) == 7


async def test_threads_that_never_come_back_do_not_starve_the_others(gate):
    clock = ManualClock()
    bounded = calls(clock=clock, width=1, abandoned=3)
    for _ in range(2):
        with pytest.raises(TooSlow):
            await bounded.run(gate.wait)
        clock.advance(seconds=6)
    assert await bounded.run(lambda: "served", limit=5) == "served"


async def test_lost_threads_are_bounded_and_all_is_well_when_they_come_back(gate):
    clock = ManualClock()
    bounded = calls(clock=clock, abandoned=2)
    for _ in range(2):
        with pytest.raises(TooSlow):
            await bounded.run(gate.wait)
        clock.advance(seconds=6)
    started = []
    with pytest.raises(StoreUnavailable):
        await bounded.run(lambda: started.append(1))
    assert not started
    gate.set()
    await settled()
    clock.advance(seconds=6)
    assert await bounded.run(lambda: "served", limit=5) == "served"


async def test_no_more_calls_run_at_once_than_there_are_places():
    lock, now, most = threading.Lock(), [0], [0]

    def work():
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        threading.Event().wait(0.01)
        with lock:
            now[0] -= 1

    bounded = calls(timeout=5, width=2)
    await asyncio.gather(*(bounded.run(work) for _ in range(8)))
    assert most[0] <= 2


async def test_a_caller_that_gives_up_leaves_no_trace(gate):
    bounded = calls(timeout=5, width=1)
    task = asyncio.create_task(bounded.run(gate.wait))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    assert await bounded.run(lambda: 1) == 1


async def test_errors_of_ours_pass_and_even_a_panic_of_the_engine_is_one_sentence():
    class Panic(BaseException):
        pass

    def fail(error):
        raise error

    with pytest.raises(NotFound):
        await calls(timeout=5).run(lambda: fail(NotFound("没有")))
    with pytest.raises(StoreUnavailable, match="出错"):
        await calls(timeout=5).run(lambda: fail(Panic("rust")))
    with pytest.raises(KeyError):
        await calls(timeout=5).run(lambda: fail(KeyError("a bug stays a bug")))


def foreign(module, name, text="", base=Exception):
    return type(name, (base,), {"__module__": module})(text)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            foreign("chromadb.errors", "InvalidArgumentError", "expecting embedding with dimension of 8, got 3"),
            SpaceMismatch,
        ),
        (foreign("chromadb.errors", "NotFoundError", "Collection [x] does not exist."), Missing),
        (foreign("chromadb.errors", "InternalError", "Error executing plan: Error finding id"), Stale),
        (
            foreign("chromadb.errors", "InternalError", "Error creating hnsw segment reader: Error loading hnsw index"),
            Torn,
        ),
        (foreign("chromadb.errors", "InternalError", "Failed to apply logs to the hnsw segment writer"), Torn),
        (foreign("chromadb.errors", "InternalError", "Error deserializing pickle file: EOF while parsing"), Torn),
        (foreign("chromadb.errors", "InternalError", "Internal error: Error getting embedding"), Torn),
        (foreign("chromadb.errors", "InternalError", "database is locked"), StoreUnavailable),
        (foreign("chromadb.errors", "ChromaAuthError"), StoreUnavailable),
        (foreign("chromadb.errors", "InvalidArgumentError", "name: Expected a name"), InvalidInput),
        (foreign("httpx", "ReadTimeout"), TooSlow),
        (foreign("httpx", "ConnectError", "Connection refused"), StoreUnavailable),
        (json.JSONDecodeError("x", "<html>", 0), StoreUnavailable),
        (ValueError("Expected metadata value"), InvalidInput),
        (OSError(28, "No space left on device"), StoreUnavailable),
        (Exception("<html>502 Bad Gateway</html>"), StoreUnavailable),
        (NotFound("没有找到"), NotFound),
    ],
)
def test_every_failure_becomes_one_plain_sentence(error, kind):
    translated = translate(error, "向量库")
    assert isinstance(translated, kind)
    assert isinstance(translated, AmritaMemoryError)
    text = str(translated)
    assert text and "\n" not in text and "Error" not in text and "http" not in text
