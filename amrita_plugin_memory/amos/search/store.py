"""The index file: SQLite with FTS5, words prepared by ``words``. Synchronous; one user at a time (see ``service``).

Everything here can be made again from the files of the root, so a file that cannot be used is deleted and begun anew.
Several processes share it: readers never wait (WAL), writers queue for `BUSY` seconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .rank import Candidate
from .words import VERSION, split

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from .places import Place

BUSY: Final = 2.0  # seconds
_SCHEMA_VERSION: Final = 200 + VERSION
_SCHEMA: Final = """
CREATE TABLE owners(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE total(pieces INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, type TEXT NOT NULL,
  session TEXT, mtime INTEGER NOT NULL, size INTEGER NOT NULL, inode INTEGER NOT NULL, done INTEGER NOT NULL,
  head BLOB NOT NULL);
CREATE INDEX files_by_owner ON files(owner);
CREATE TABLE pieces(id INTEGER PRIMARY KEY, file INTEGER NOT NULL, ts TEXT, text TEXT NOT NULL);
CREATE INDEX pieces_by_file ON pieces(file);
CREATE VIRTUAL TABLE words USING fts5(place, name, units, pairs, tokenize = 'ascii');
CREATE VIRTUAL TABLE terms USING fts5vocab(words, 'row');
INSERT INTO words(words, rank) VALUES('rank', 'bm25(0.0, 4.0, 1.0, 1.5)');
"""
_PIECES: Final = "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rank LIMIT ?"
_FILES: Final = """
SELECT w.rowid, min(w.rank) AS best FROM words AS w JOIN pieces AS q ON q.id = w.rowid
WHERE words MATCH ? AND w.rowid BETWEEN ? AND ? GROUP BY q.file ORDER BY best LIMIT ?
"""
_FIND: Final = """
SELECT f.path, f.owner, f.type, f.session, f.mtime, p.ts, p.text, w.name, w.units, w.pairs
FROM ({}) AS best
JOIN words AS w ON w.rowid = best.rowid JOIN pieces AS p ON p.id = best.rowid JOIN files AS f ON f.id = p.file
"""
_BOUND: Final = """
SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT 1 OFFSET ?
"""
_SPAN: Final = 1 << 40  # the pieces of an owner stand together, so that nobody else's are ever walked over
RANKED: Final = 1_000
ASSET_SHELF: Final = "#assets"
MARK: Final = "\ue000"  # begins every word of the place column, and no word of any text (see ``words``)
_log = logging.getLogger("amrita_memory.amos")


@dataclass(frozen=True, slots=True)
class Stamp:
    """How a file looked: modification time in ns, bytes, inode."""

    mtime: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was indexed: ``done`` bytes of it, beginning with what ``head`` is the digest of."""

    id: int
    stamp: Stamp
    done: int
    head: bytes


@dataclass(frozen=True, slots=True)
class Piece:
    """A text that is found as one: a note, or one exchange of a talk with its ISO time."""

    text: str
    ts: str | None = None
    spoken: str | None = None  # the part of the text whose words are indexed; all of it when None


@dataclass(frozen=True, slots=True)
class Content:
    """What is indexed of a file: ``done`` and ``head`` as in `Known`; ``mark`` is one more word of the place."""

    pieces: tuple[Piece, ...]
    done: int = 0
    head: bytes = b""
    tags: tuple[str, ...] = ()
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One piece that matches, with the file it stands in."""

    path: str
    owner: str
    type: str
    session: str | None
    mtime: int
    ts: str | None
    candidate: Candidate


def place_words(place: Place, mark: str = "") -> str:
    """Words of the ``place`` column: the type, whether it is of a running session, and ``mark``."""
    running = place.session is not None and place.type in ("messages", "summary")
    session = session_word(place.owner, place.session) if running and place.session is not None else ""
    return " ".join(filter(None, (type_word(place.type), session, mark)))


def shelf(place: Place) -> str:
    """Where the pieces of a file stand: memory and assets of an owner apart."""
    return f"{place.owner}{ASSET_SHELF}" if place.type in ("tool", "page", "app") else place.owner


def type_word(kind: str) -> str:
    """The token of a type."""
    return f"{MARK}type{kind}"


def session_word(owner: str, session: str) -> str:
    """The token of what a running session holds (its messages and summary, not its archive)."""
    return f"{MARK}session" + _digest(f"{owner}/sessions/{session}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Store:
    """An open index file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = self._open()
        self._inode = self._stat()

    def _open(self) -> sqlite3.Connection:
        fresh = not self.path.exists()
        db = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            if fresh:
                self.path.chmod(0o600)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = ON")
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        if _version(db) == _SCHEMA_VERSION:
            return
        db.execute("BEGIN IMMEDIATE")
        if _version(db) == 0:
            for statement in _SCHEMA.strip().split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        db.execute("COMMIT")
        if _version(db) != _SCHEMA_VERSION:
            raise sqlite3.DatabaseError("index of another version")

    def _stat(self) -> int:
        try:
            return self.path.stat().st_ino
        except OSError:
            return -1

    @property
    def replaced(self) -> bool:
        """True when the file was deleted or exchanged under us."""
        return self._stat() != self._inode

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def writing(self) -> Generator[None]:
        """One write transaction, alone among all processes; undone when the body raises."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def stamps(self, owner: str) -> dict[str, Stamp]:
        """Every indexed file of an owner."""
        rows = self._db.execute("SELECT path, mtime, size, inode FROM files WHERE owner = ?", (owner,))
        return {path: Stamp(mtime, size, inode) for path, mtime, size, inode in rows}

    def known(self, path: str) -> Known | None:
        """One indexed file."""
        row = self._db.execute(
            "SELECT id, mtime, size, inode, done, head FROM files WHERE path = ?", (path,)
        ).fetchone()
        return None if row is None else Known(row[0], Stamp(row[1], row[2], row[3]), row[4], row[5])

    def put(self, place: Place, stamp: Stamp, content: Content) -> None:
        """Index a file anew."""
        self.drop(place.path)
        seen = (stamp.mtime, stamp.size, stamp.inode, content.done, content.head)
        cursor = self._db.execute(
            "INSERT INTO files(path, owner, type, session, mtime, size, inode, done, head) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (place.path, place.owner, place.type, place.session, *seen),
        )
        self._add(cursor.lastrowid or 0, place, content)

    def extend(self, known: Known, place: Place, stamp: Stamp, content: Content) -> None:
        """Index what was appended to a file."""
        self._db.execute(
            "UPDATE files SET mtime = ?, size = ?, inode = ?, done = ?, head = ? WHERE id = ?",
            (stamp.mtime, stamp.size, stamp.inode, content.done, content.head, known.id),
        )
        self._add(known.id, place, content)

    def drop(self, path: str) -> None:
        """Forget a file."""
        known = self.known(path)
        if known is None:
            return
        self._db.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM pieces WHERE file = ?)", (known.id,))
        gone = self._db.execute("DELETE FROM pieces WHERE file = ?", (known.id,)).rowcount
        self._db.execute("UPDATE total SET pieces = pieces - ?", (gone,))
        self._db.execute("DELETE FROM files WHERE id = ?", (known.id,))

    def _add(self, file: int, place: Place, content: Content) -> None:
        name = split(" ".join((*place.names, *content.tags)))
        names, where = " ".join((*name.units, *name.pairs)), place_words(place, content.mark)
        first = self._next_id(shelf(place))
        for number, piece in enumerate(content.pieces, first):
            fields = (number, file, piece.ts, piece.text)
            self._db.execute("INSERT INTO pieces(id, file, ts, text) VALUES (?, ?, ?, ?)", fields)
            found = split(piece.text if piece.spoken is None else piece.spoken)
            self._db.execute(
                "INSERT INTO words(rowid, place, name, units, pairs) VALUES (?, ?, ?, ?, ?)",
                (number, where, names, " ".join(found.units), " ".join(found.pairs)),
            )
        self._db.execute("UPDATE total SET pieces = pieces + ?", (len(content.pieces),))

    def _next_id(self, name: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO owners(name) VALUES (?)", (name,))
        low, high = self._range(name) or (0, 0)
        last = self._db.execute("SELECT max(id) FROM pieces WHERE id BETWEEN ? AND ?", (low, high)).fetchone()[0]
        return low if last is None else last + 1

    def _range(self, name: str) -> tuple[int, int] | None:
        row = self._db.execute("SELECT id FROM owners WHERE name = ?", (name,)).fetchone()
        return None if row is None else (row[0] * _SPAN, (row[0] + 1) * _SPAN - 1)

    def find(
        self, name: str, expression: str, limit: int, *, by_file: bool = False, most: int = RANKED + 1
    ) -> list[Row]:
        """Pieces of one shelf that meet an FTS5 expression, the best by BM25 first; ``by_file``: one of each file.

        ``most`` is how many can meet it at most, when the caller knows.

        Ranking costs microseconds for each piece that matches, so of more than `RANKED` only the newest are ranked.
        """
        span = self._range(name)
        if span is None:
            return []
        low, high = span
        bound = self._db.execute(_BOUND, (expression, low, high, RANKED)).fetchone() if most > RANKED else None
        best = _FIND.format(_FILES if by_file else _PIECES)
        rows = self._db.execute(best, (expression, bound[0] if bound else low, high, limit))
        return [Row(a, b, c, d, e, f, Candidate(*rest)) for a, b, c, d, e, f, *rest in rows]

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many pieces each term occurs."""
        marks = ", ".join("?" * len(terms))
        return dict(self._db.execute(f"SELECT term, doc FROM terms WHERE term IN ({marks})", tuple(terms)))  # noqa: S608

    def size(self) -> int:
        """How many pieces there are."""
        return self._db.execute("SELECT pieces FROM total").fetchone()[0]

    def count_files(self) -> int:
        """How many files are indexed."""
        return self._db.execute("SELECT count(*) FROM files").fetchone()[0]

    def check(self) -> bool:
        """True when SQLite finds nothing wrong with the file."""
        return self._db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def open_store(path: Path) -> Store:
    """Open the index, made anew when it is missing, damaged or of another version."""
    try:
        return Store(path)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise
        _log.warning("search index cannot be used and is begun anew: %s", error)
    except sqlite3.DatabaseError as error:
        _log.warning("search index is damaged and is begun anew: %s", error)
    destroy(path)
    return Store(path)


def destroy(path: Path) -> None:
    """Delete the index file and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")  # noqa: PTH108 - the name is built by suffix


def is_sound(path: Path) -> bool:
    """True when an index file can be opened and SQLite finds nothing wrong with it."""
    try:
        index = Store(path)
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except sqlite3.DatabaseError:
        return False
    try:
        return index.check()
    except sqlite3.DatabaseError:
        return False
    finally:
        index.close()
