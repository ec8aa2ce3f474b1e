"""What can be said of a local Chroma directory from outside Chroma: who may write, whether it changed, what is waste.

SQLite's locks belong to the process, and closing *any* descriptor of the database drops all of them. So the stamp keeps
one descriptor open for as long as Chroma has the database open, and the sweep runs only while it has not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Generator
from pathlib import Path
from uuid import UUID

from amrita_plugin_memory.kernel.errors import Locked

DATABASE = "chroma.sqlite3"
LOCK_FILE = ".writer.lock"
OWNER_FILE = ".writer.pid"  # apart from the lock file, which every contender truncates
COMMITS_OF_A_WRITE = 2  # Chroma commits its log and its metadata; measured on 1.5.9
ASIDE = ".torn"  # ends the name of an index folder that was put out of Chroma's sight
_HEADER = 28
_INDEX_FILES = frozenset({"header.bin", "data_level0.bin", "length.bin", "link_lists.bin", "index_metadata.pickle"})


class WriterLock:
    """The right to write to ``directory``, one process at a time; the system frees it when its holder dies.

    Blocking; meant for a worker thread.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        from filelock import FileLock  # 0.2 s with all it brings, which a mere look into a directory need not pay

        self._lock = FileLock(directory / LOCK_FILE, timeout=0, thread_local=False)

    def acquire(self) -> None:
        """Take the lock or raise Locked at once; makes the directory when it is missing."""
        from filelock import Timeout

        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            raise Locked(self._sentence()) from None
        (self._directory / OWNER_FILE).write_text(str(os.getpid()), "utf-8")

    def release(self) -> None:
        """Give the lock back; no error when it is not held."""
        if self._lock.is_locked:
            (self._directory / OWNER_FILE).unlink(missing_ok=True)
            self._lock.release()

    def _sentence(self) -> str:
        owner = ""
        with contextlib.suppress(OSError, ValueError):
            owner = f"（进程 {int((self._directory / OWNER_FILE).read_text('utf-8'))}）"
        return f"另一个程序{owner}正在写这个记忆库，请先停止机器人或等它结束后再试"


class ChangeStamp:
    """SQLite's file change counter: bytes 24..27 of the database file, one more with every commit by anybody.

    Why this: reading it costs 1.5 µs and takes no lock, while ``PRAGMA data_version`` costs 15 µs, needs a second
    SQLite in the process (see above) and cannot tell one commit from two; modification times miss two commits within
    one tick; asking Chroma with a ``where`` costs 30-100 ms at 100k rows. Format: sqlite.org/fileformat2.html §1.3.7.
    """

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory / DATABASE, os.O_RDONLY | getattr(os, "O_BINARY", 0))

    def read(self) -> int | None:
        """The counter; None when it cannot be relied upon (write-ahead logging does not move it)."""
        try:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            header = os.read(self._descriptor, _HEADER)
        except OSError:
            return None
        if len(header) < _HEADER or header[18] != 1:
            return None
        return int.from_bytes(header[24:28], "big")

    def close(self) -> None:
        """Close the descriptor; Chroma must have closed the database before."""
        os.close(self._descriptor)


def sweep(directory: Path) -> int:
    """Remove index folders that no collection owns any more (Chroma leaves one behind with every deletion).

    Folders are listed before their owners are: a folder is made after its owner is recorded, so one that has no owner
    then never gets one. Only folders that are named and filled as Chroma does are touched, and those that were put
    aside. Returns how many went.
    """
    folders = [path for path in directory.iterdir() if index_id(path)] if directory.is_dir() else []
    if not folders or not (directory / DATABASE).is_file():
        return 0
    try:
        with reading(directory) as connection:
            owned = {str(row[0]) for row in connection.execute("SELECT id FROM segments")}
    except sqlite3.Error:
        return 0
    waste = [path for path in folders if index_id(path) not in owned]
    for path in waste:
        shutil.rmtree(path, ignore_errors=True)
    return len(waste)


@contextlib.contextmanager
def reading(directory: Path) -> Generator[sqlite3.Connection]:
    """Chroma's database, read-only. Closing it drops this process's locks on it: only while Chroma has it closed."""
    uri = f"{(directory / DATABASE).resolve().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=2)) as connection:
        yield connection


def index_id(path: Path) -> str:
    """Which index a folder holds, in use or put aside; "" when it is none of Chroma's."""
    name = path.name.removesuffix(ASIDE)
    try:
        named = str(UUID(name)) == name
    except ValueError:
        return ""
    return name if named and path.is_dir() and {entry.name for entry in path.iterdir()} <= _INDEX_FILES else ""
