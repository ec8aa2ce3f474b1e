"""A Chroma server that is down, silent, killed, restarted, or written to by others: bounded, plain, and healing."""

import asyncio
import contextlib
import socket
import threading
import time
import uuid
from contextlib import AsyncExitStack, asynccontextmanager

import numpy as np
import pytest
from support.chroma_server import free_port, running_chroma
from support.foreign import ForeignProgram

from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.settings import EnvSettings
from amrita_plugin_memory.vectordb import Row, open_store

pytestmark = pytest.mark.timeout(180)  # one of the tests starts the server for all
GENEROUS = 90  # seconds; the calls below are given a fraction of a second, importing chromadb is not


def row(id, user="u1", document="喜欢花生", vector=(1, 0, 0, 0)):
    return Row(id, document, {"user_id": user}, np.array(vector, dtype=np.float32))


def ids(rows):
    return [r.id for r in rows]


@asynccontextmanager
async def connected(port, *, clock=None, **settings):
    store = await open_store(EnvSettings(vector_db_type="remote", vector_db_port=port, **settings), clock=clock)
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture
def silent():
    """A server that accepts and never answers."""
    held = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    held.append(listener.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    for connection in held:
        connection.close()


@pytest.fixture
def foolish():
    """A server that answers, but is no Chroma."""
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<html>hi</html>"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(page)

        threading.Thread(target=answer, daemon=True).start()
        yield listener.getsockname()[1]
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


async def test_opening_a_server_that_is_down_is_no_error_before_the_first_call():
    async with connected(free_port()):
        pass


@pytest.mark.server
async def test_a_server_that_is_down_is_one_plain_sentence_with_the_address():
    port = free_port()
    async with asyncio.timeout(GENEROUS), connected(port) as store:
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=rf"连不上.*127\.0\.0\.1:{port}.*VECTOR_DB_SERVER"):
                await store.open("facts")


@pytest.mark.server
async def test_a_server_that_accepts_and_never_answers_is_bounded_and_then_left_alone(silent):
    clock = ManualClock()
    async with asyncio.timeout(GENEROUS), connected(silent, clock=clock, vector_db_timeout=0.3) as store:
        with pytest.raises(StoreUnavailable, match="没有及时回应"):
            await store.open("facts")
        started = time.monotonic()
        for _ in range(50):
            with pytest.raises(StoreUnavailable, match="没有及时回应"):
                await store.names()
        assert time.monotonic() - started < 5
        clock.advance(seconds=10)
        with pytest.raises(StoreUnavailable):
            await store.names()


@pytest.mark.server
async def test_a_server_that_is_no_chroma_is_told_so(foolish):
    async with asyncio.timeout(GENEROUS), connected(foolish) as store:
        with pytest.raises(StoreUnavailable, match="不是 Chroma"):
            await store.names()


@pytest.fixture
def name():
    return f"facts-{uuid.uuid4().hex}"


@pytest.mark.server
async def test_a_server_that_was_killed_and_started_again_heals_with_everything_on_it(tmp_path, name):
    async with AsyncExitStack() as stack:
        server = stack.enter_context(running_chroma(tmp_path))
        store = await stack.enter_async_context(connected(server.port))
        facts = await store.open(name)
        await facts.add([row("a")])
        assert await facts.size("u1") == 1

        server.kill()
        for call in (facts.partition("u1"), facts.add([row("b")]), facts.count(), facts.metadata()):
            with pytest.raises(StoreUnavailable):
                await call

        server.start()
        await facts.add([row("b")])
        assert ids((await facts.partition("u1")).rows) == ["a", "b"]


@pytest.mark.server
async def test_the_words_default_mean_the_stock_tenant_and_others_are_meant_as_they_are(chroma_server, name):
    async with connected(
        chroma_server.port, vector_db_tenant="default_tenant", vector_db_database="default_database"
    ) as store:
        await store.open(name)
    async with connected(chroma_server.port) as store:
        assert name in await store.names()
    async with connected(chroma_server.port, vector_db_tenant="nobody") as store:
        with pytest.raises(StoreUnavailable, match=r"租户 nobody.*VECTOR_DB_TENANT"):
            await store.names()
    async with connected(chroma_server.port, vector_db_database="nothing") as store:
        with pytest.raises(StoreUnavailable, match=r"数据库 nothing.*VECTOR_DB_DATABASE"):
            await store.names()


@pytest.mark.server
async def test_a_proxy_of_the_environment_does_not_stand_before_loopback(chroma_server, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with connected(chroma_server.port) as store:
        assert isinstance(await store.names(), list)


@pytest.mark.server
async def test_two_bots_on_one_server_see_each_others_facts_at_once(chroma_server, name):
    async with connected(chroma_server.port) as one, connected(chroma_server.port) as two:
        mine, theirs = await one.open(name), await two.open(name)
        await mine.add([row("a"), row("b")])
        assert ids((await theirs.partition("u1")).rows) == ["a", "b"]
        await mine.update([row("a", document="改", vector=(0, 0, 0, 7))])
        await mine.add([row("c", vector=(0, 0, 7, 0))])
        await mine.delete(["b"])
        partition = await theirs.partition("u1")
        assert [(r.id, r.document) for r in partition.rows] == [("a", "改"), ("c", "喜欢花生")]
        assert partition.matrix.tolist() == [[0, 0, 0, 7], [0, 0, 7, 0]]
        assert await theirs.partition("u1") is partition
        await mine.annotate({"embed_model": "m"})
        assert await theirs.metadata() == {"embed_model": "m"}


@pytest.mark.server
async def test_a_swap_by_another_bot_is_followed_once_the_old_collection_is_gone(chroma_server, name):
    async with connected(chroma_server.port) as one, connected(chroma_server.port) as two:
        old, theirs = await one.open(name), await two.open(name)
        await old.add([row("a")])
        before = await theirs.partition("u1")
        new = await one.open(f"{name}__rebuild")
        await new.add([row("a", vector=(1, 1))])
        await one.rename(name, f"{name}__old")
        await one.rename(f"{name}__rebuild", name)
        await one.drop(f"{name}__old")
        after = await theirs.partition("u1")
        assert after.matrix.shape == (1, 2)
        assert after.source != before.source


@pytest.mark.server
async def test_a_program_with_plain_chromadb_on_the_same_server_is_seen(chroma_server, name):
    async with connected(chroma_server.port) as store:
        facts = await store.open(name)
        await facts.add([row("a")])
        await facts.partition("u1")
        other = ForeignProgram(port=chroma_server.port)
        try:
            other.run(
                f"collection('{name}').add(ids=['b'], embeddings=[[0,1,0,0]], documents=['x'], metadatas=[{{'user_id':'u1'}}])"
            )
            assert ids((await facts.partition("u1")).rows) == ["a", "b"]
            other.run(f"collection('{name}').delete(ids=['a'])")
            assert ids((await facts.partition("u1")).rows) == ["b"]
        finally:
            other.close()
