import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from amrita_plugin_memory.kernel.errors import Locked
from amrita_plugin_memory.vectordb.directory import DATABASE, ChangeStamp, WriterLock, sweep

OWNED = "11111111-1111-4111-8111-111111111111"
WASTE = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def database(tmp_path):
    """As much of a Chroma directory as is looked at from outside."""
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        connection.execute("CREATE TABLE segments (id TEXT PRIMARY KEY)")
        connection.execute("INSERT INTO segments VALUES (?)", (OWNED,))
        connection.commit()
    return tmp_path


def insert(directory, value, *, pragma="journal_mode=delete"):
    with closing(sqlite3.connect(directory / DATABASE)) as connection:
        connection.execute(f"PRAGMA {pragma}")
        connection.execute("INSERT INTO segments VALUES (?)", (value,))
        connection.commit()


def folder(directory, name, *files):
    (directory / name).mkdir()
    for file in files:
        (directory / name / file).write_bytes(b"x")
    return directory / name


def test_the_stamp_moves_by_one_with_every_commit_of_anybody(database):
    stamp = ChangeStamp(database)
    first = stamp.read()
    assert stamp.read() == first
    insert(database, "a")
    insert(database, "b")
    assert stamp.read() == first + 2
    stamp.close()


def test_the_stamp_admits_that_it_cannot_be_relied_upon_under_write_ahead_logging(database):
    stamp = ChangeStamp(database)
    insert(database, "a", pragma="journal_mode=wal")
    assert stamp.read() is None
    stamp.close()


def test_only_index_folders_that_nobody_owns_are_swept(database):
    owned = folder(database, OWNED, "header.bin")
    waste = folder(database, WASTE, "header.bin", "data_level0.bin", "length.bin", "link_lists.bin")
    foreign = folder(database, "33333333-3333-4333-8333-333333333333", "diary.txt")
    unnamed = folder(database, "backups", "header.bin")
    assert sweep(database) == 1
    assert not waste.exists()
    assert owned.exists() and foreign.exists() and unnamed.exists()


def test_nothing_is_swept_when_the_owners_cannot_be_read(tmp_path):
    waste = folder(tmp_path, WASTE, "header.bin")
    assert sweep(tmp_path) == 0
    (tmp_path / DATABASE).write_bytes(b"not a database, long enough to be looked at " * 50)
    assert sweep(tmp_path) == 0
    assert waste.exists()
    assert sweep(tmp_path / "missing") == 0


def test_a_second_writer_is_told_who_is_at_work(tmp_path):
    first, second = WriterLock(tmp_path / "db"), WriterLock(tmp_path / "db")
    first.acquire()
    for _ in range(2):
        with pytest.raises(Locked, match=f"进程 {os.getpid()}"):
            second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


def test_a_writer_that_died_without_a_word_holds_nothing(tmp_path):
    code = (
        "import os, sys, pathlib; from amrita_plugin_memory.vectordb.directory import WriterLock;"
        "WriterLock(pathlib.Path(sys.argv[1])).acquire(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 9
    lock = WriterLock(tmp_path)
    lock.acquire()
    lock.release()
