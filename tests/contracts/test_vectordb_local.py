"""The local directory with others about: a second process, a foreign program, a kill, data of the published plugin."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from support.foreign import ForeignProgram

from amrita_plugin_memory.kernel.errors import Locked, StoreUnavailable
from amrita_plugin_memory.settings import EnvSettings
from amrita_plugin_memory.vectordb import Row, fetch, open_store

pytestmark = pytest.mark.timeout(240)  # processes that import chromadb take their time on a loaded machine
NAME = "amrita_user_memory"
SHARED = Path(os.environ.get("AMRITA_SHARED", Path(__file__).resolve().parents[3] / "shared"))
FIXTURE = SHARED / "fixtures" / "published-plugin-0.8.1" / "data" / "amrita_plugin_memory" / "vector_db.chroma"


def row(id, user="u1", document="喜欢花生", vector=(1, 0, 0, 0), **metadata):
    return Row(id, document, {"user_id": user, **metadata}, np.array(vector, dtype=np.float32))


def ids(rows):
    return [r.id for r in rows]


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "vector_db.chroma"


@asynccontextmanager
async def opened(directory, **options):
    store = await open_store(EnvSettings(), directory=directory, **options)
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture
async def store(directory):
    async with opened(directory) as store:
        yield store


@pytest.fixture
async def facts(store):
    return await store.open(NAME)


@pytest.fixture
def foreign(directory, facts):
    program = ForeignProgram(path=directory)
    yield program
    program.close()


async def test_what_was_stored_is_there_after_closing_and_opening(directory):
    async with opened(directory) as store:
        await (await store.open(NAME)).add([row("a"), row("b", vector=(0, 1, 0, 0))])
    async with opened(directory) as store:
        partition = await (await store.open(NAME, create=False)).partition("u1")
    assert ids(partition.rows) == ["a", "b"]
    assert partition.matrix.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]


async def test_a_closed_store_says_so(directory):
    async with opened(directory) as store:
        facts = await store.open(NAME)
    with pytest.raises(StoreUnavailable, match="已经关闭"):
        await facts.count()


async def test_a_reader_sees_a_directory_that_is_not_there_as_empty_and_makes_nothing(directory):
    async with opened(directory, writable=False) as store:
        assert await store.names() == []
        assert await store.open(NAME) is None
    assert not directory.exists()


async def test_a_reader_beside_the_writer_reads_what_is_written_and_writes_nothing(directory, facts):
    await facts.add([row("a")])
    async with opened(directory, writable=False) as reader:
        seen = await reader.open(NAME)
        assert ids((await seen.partition("u1")).rows) == ["a"]
        await facts.add([row("b")])
        await facts.update([row("a", document="改")])
        assert [r.document for r in (await seen.partition("u1")).rows] == ["改", "喜欢花生"]
        await facts.delete(["a"])
        assert ids((await seen.partition("u1")).rows) == ["b"]
        for write in (
            seen.add([row("c")]),
            seen.delete(["b"]),
            seen.annotate({"x": 1}),
            reader.drop(NAME),
            reader.rename(NAME, "other-name"),
        ):
            with pytest.raises(Locked, match="只读"):
                await write
    assert await facts.count() == 1


async def test_a_second_writer_is_refused_at_once_and_served_after_the_first_has_closed(directory):
    async with opened(directory):
        with pytest.raises(Locked, match="先停止机器人"):
            await open_store(EnvSettings(), directory=directory)
    async with opened(directory) as store:
        assert await store.names() == []


@pytest.mark.slow
async def test_another_process_may_read_but_not_write_while_the_bot_runs(directory, facts):
    await facts.add([row("a")])
    code = textwrap.dedent("""
        import asyncio, sys, pathlib
        from amrita_plugin_memory.kernel.errors import Locked
        from amrita_plugin_memory.settings import EnvSettings
        from amrita_plugin_memory.vectordb import open_store

        async def main():
            directory = pathlib.Path(sys.argv[1])
            reader = await open_store(EnvSettings(), directory=directory, writable=False)
            facts = await reader.open("amrita_user_memory")
            print([r.id for r in (await facts.partition("u1")).rows], await facts.count())
            await reader.aclose()
            try:
                await open_store(EnvSettings(), directory=directory)
            except Locked as e:
                print(e)

        asyncio.run(main())
    """)
    command = [sys.executable, "-X", "utf8", "-c", code, str(directory)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True, timeout=50)
    assert done.stdout.splitlines() == [
        "['a'] 1",
        f"另一个程序（进程 {os.getpid()}）正在写这个记忆库，请先停止机器人或等它结束后再试",
    ]


@pytest.mark.slow
async def test_what_a_foreign_program_adds_changes_and_deletes_is_seen_at_the_next_read(facts, foreign):
    await facts.add([row("a"), row("b")])
    await facts.partition("u1")

    foreign.run(
        f"collection('{NAME}').add(ids=['c'], embeddings=[[0,0,1,0]], documents=['他人写入'], metadatas=[{{'user_id':'u1'}}])"
    )
    partition = await facts.partition("u1")
    assert [(r.id, r.document) for r in partition.rows][-1] == ("c", "他人写入")
    assert partition.matrix[2].tolist() == [0, 0, 1, 0]

    foreign.run(f"collection('{NAME}').update(ids=['a'], embeddings=[[0,0,0,9]], documents=['改过'])")
    partition = await facts.partition("u1")
    assert partition.rows[0].document == "改过"
    assert partition.matrix[0].tolist() == [0, 0, 0, 9]

    foreign.run(f"collection('{NAME}').delete(ids=['b'])")
    assert ids((await facts.partition("u1")).rows) == ["a", "c"]

    foreign.run(f"collection('{NAME}').modify(metadata={{'embed_model':'other'}})")
    assert await facts.metadata() == {"embed_model": "other"}


@pytest.mark.slow
async def test_our_writes_and_a_foreign_programs_taken_in_turn_lose_nothing(facts, foreign):
    for n in range(12):
        foreign.run(
            f"collection('{NAME}').add(ids=['f{n}'], embeddings=[[{n},0,0,1]], documents=['f'], metadatas=[{{'user_id':'u1'}}])"
        )
        await facts.add([row(f"o{n}", vector=(n, 1, 0, 0))])
        partition = await facts.partition("u1")
        assert ids(partition.rows) == [f"{k}{m}" for m in range(n + 1) for k in "fo"]
        assert partition.matrix[-2:].tolist() == [[n, 0, 0, 1], [n, 1, 0, 0]]


@pytest.mark.slow
async def test_a_collection_that_a_foreign_program_rebuilt_and_swapped_is_followed(store, facts, foreign):
    await facts.add([row("a")])
    before = await facts.partition("u1")
    for statement in (
        f"client.create_collection('{NAME}__rebuild', embedding_function=None)",
        f"collection('{NAME}__rebuild').add(ids=['a'], embeddings=[[1,1]], metadatas=[{{'user_id':'u1'}}])",
        f"client.delete_collection('{NAME}')",
        f"collection('{NAME}__rebuild').modify(name='{NAME}')",
    ):
        foreign.run(statement)
    after = await facts.partition("u1")
    assert after.matrix.tolist() == [[1, 1]]
    assert after.source != before.source
    foreign.run(f"collection('{NAME}').modify(name='elsewhere')")
    with pytest.raises(StoreUnavailable):
        await facts.partition("u1")
    assert await store.open(NAME, create=False) is None


async def test_a_hot_partition_is_read_without_asking_chroma(facts, monkeypatch):
    await facts.add([row("a")])
    first = await facts.partition("u1")
    monkeypatch.setattr("amrita_plugin_memory.vectordb.fetch.partition", lambda *_: pytest.fail("asked Chroma"))
    assert await facts.partition("u1") is first
    await facts.add([row("b", user="u2")])
    assert await facts.partition("u1") is first
    await facts.add([row("c")])
    assert ids((await facts.partition("u1")).rows) == ["a", "c"]


async def test_a_load_that_overlapped_a_write_is_not_kept(facts, monkeypatch):
    await facts.add([row("a")])
    loaded, go_on = threading.Event(), threading.Event()
    real = fetch.partition

    def slow(*arguments):
        found = real(*arguments)
        loaded.set()
        go_on.wait(20)
        return found

    monkeypatch.setattr("amrita_plugin_memory.vectordb.fetch.partition", slow)
    overlapped = asyncio.create_task(facts.partition("u1"))
    await asyncio.to_thread(loaded.wait, 20)
    await facts.add([row("b")])
    go_on.set()
    await overlapped
    assert ids((await facts.partition("u1")).rows) == ["a", "b"]


async def test_dropping_a_collection_leaves_no_index_folder_behind(directory, store, facts):
    await facts.add([row("kept")])
    owned = _folders(directory)
    for n in range(2):
        rebuilt = await store.open(f"rebuild-{n}")
        await rebuilt.add([row(f"r{k}") for k in range(1_100)])
        assert len(_folders(directory)) == len(owned) + 1
        await store.drop(f"rebuild-{n}")
        assert _folders(directory) == owned
    assert ids((await facts.partition("u1")).rows) == ["kept"]


def _folders(directory):
    return {path.name for path in directory.iterdir() if path.is_dir()}


async def test_vectors_that_cannot_be_read_do_not_hide_the_words(directory, facts, caplog):
    await facts.add([row("a"), *[row(f"r{n}", user="u2") for n in range(1_100)]])

    def broken(handle, key, held=None):
        from amrita_plugin_memory.vectordb.calls import Stale

        raise Stale("索引损坏")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("amrita_plugin_memory.vectordb.fetch.partition", broken)
        partition = await facts.partition("u1")
    assert [r.document for r in partition.rows] == ["喜欢花生"]
    assert "reindex" in caplog.text


async def test_a_collection_whose_space_stands_in_its_metadata_can_be_annotated(directory, store):
    await store.open("legacy")
    await store.drop("legacy")

    def make(connection):
        connection.commits += 1
        connection.server.create_collection("legacy", metadata={"hnsw:space": "cosine", "mark": "x"})

    await store._link.write(make)
    legacy = await store.open("legacy")
    await legacy.add([row("a", vector=(3, 0, 0, 0))])
    await legacy.annotate({"embed_model": "m"})
    assert await legacy.metadata() == {"mark": "x", "embed_model": "m"}
    async with opened(directory, writable=False) as reader:
        space = await reader._link.read(lambda c: c.collection("legacy").configuration["hnsw"]["space"])
    assert space == "cosine"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_forked_child_is_refused_instead_of_hanging_for_ever(facts):
    await facts.add([row("a")])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            facts._link._require_usable()
        except StoreUnavailable:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"refused"
    os.close(read)
    os.close(write)
    assert await facts.count() == 1


@pytest.mark.slow
async def test_acknowledged_rows_survive_a_kill_at_any_moment(directory):
    code = textwrap.dedent("""
        import asyncio, sys, pathlib
        import numpy as np
        from amrita_plugin_memory.settings import EnvSettings
        from amrita_plugin_memory.vectordb import Row, open_store

        async def main():
            store = await open_store(EnvSettings(), directory=pathlib.Path(sys.argv[1]))
            facts = await store.open("amrita_user_memory")
            for n in range(int(sys.argv[2]), 100_000, 7):
                rows = [Row(f"{n}-{k}", "x", {"user_id": "u1"}, np.ones(4, dtype=np.float32)) for k in range(1 + n % 60)]
                await facts.add(rows)
                print("+", n, flush=True)
                if n % 3 == 0:
                    await facts.delete([f"{n}-0"])
                    print("-", n, flush=True)

        asyncio.run(main())
    """)
    there, gone = set(), set()
    for start in range(2):
        command = [sys.executable, "-c", code, str(directory), str(start)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            for _ in range(random.randrange(8, 30)):
                _note(writer.stdout.readline().split(), there, gone)
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout:
                _note(line.split(), there, gone)
    async with opened(directory) as store:
        facts = await store.open(NAME, create=False)
        stored = set(ids((await facts.partition("u1")).rows))
        assert there - gone <= stored
        assert not gone & stored
        assert there
        assert await facts.count() == len(stored)


def _note(words, there, gone):
    if len(words) == 2 and words[1].isdigit():
        n = int(words[1])
        if words[0] == "+":
            there.update(f"{n}-{k}" for k in range(1 + n % 60))
        else:
            gone.add(f"{n}-0")


@pytest.mark.skipif(not FIXTURE.is_dir(), reason="the shared fixture of the published plugin is not here")
async def test_a_directory_of_the_published_plugin_is_read_added_to_and_deleted_from(directory):
    shutil.copytree(FIXTURE, directory)
    async with opened(directory) as store:
        facts = await store.open(NAME, create=False)
        metadata = await facts.metadata()
        rows = [r async for page in facts.pages(vectors=True) for r in page]
        key = str(rows[0].metadata["user_id"])
        before = await facts.partition(key)

        assert len(metadata["embed_fingerprint"]) == 64
        assert metadata["key_schema_version"] == 2
        assert len(rows) == await facts.count() > 0
        assert {"user_id", "scope", "tags", "importance", "created_at"} <= set(rows[0].metadata)

        await facts.add([Row("ours", "新的记忆", {"user_id": key}, before.matrix[0])])
        await facts.update([Row(rows[0].id, "改过的记忆", rows[0].metadata)])
        await facts.annotate({"embed_dimension": int(before.matrix.shape[1])})
    async with opened(directory) as store:
        facts = await store.open(NAME, create=False)
        after = await facts.partition(key)
        assert ids(after.rows) == [*ids(before.rows), "ours"]
        assert "改过的记忆" in [r.document for r in after.rows]
        assert await facts.delete(["ours", rows[0].id]) == 2
        assert await facts.metadata() == {**metadata, "embed_dimension": before.matrix.shape[1]}
