"""Keeping the index in step with the files. Synchronous; one caller at a time (see ``service``)."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from amrita_plugin_memory.amos.ground import layout

from . import content, places, store, watch
from .ask import ASSETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from amrita_plugin_memory.amos.ground import FileRoot
    from amrita_plugin_memory.kernel.clock import Clock

INDEX_FILE: Final = layout.PRIVATE / "search.db"
BATCH: Final = 250  # files of one transaction
PATIENCE: Final = 10.0  # seconds a search waits for a root that was never indexed; the rest follows behind its back
_log = logging.getLogger("amrita_memory.amos")


class Upkeep:
    """The open index of one root and what is known of its files."""

    def __init__(self, files: FileRoot, clock: Clock, tags: Callable[[str], Sequence[str]]) -> None:
        self._files = files
        self._tags = tags
        self._store: store.Store | None = None
        self._watch = watch.Watch(files.root, clock)
        self._clock = clock
        self._dirty: set[str] = set()
        self._behind: list[str] = []

    @property
    def path(self) -> Path:
        """Where the index stands; its folder is made."""
        return self._files.make_dir(INDEX_FILE.parent) / INDEX_FILE.name

    def mark(self, path: str) -> None:
        """Note a file that must be read again; from any thread."""
        self._dirty.add(path)

    def close(self) -> None:
        """Close the index; it is opened again by the next use."""
        if self._store is not None:
            self._store.close()
        self._store = None
        self._watch.forget()
        self._behind = []

    def destroy(self) -> None:
        """Close the index and delete it."""
        self.close()
        store.destroy(self.path)

    @property
    def is_behind(self) -> bool:
        """True while files are known that are not indexed yet."""
        return bool(self._behind)

    def catch_up(self, seconds: float) -> None:
        """Index what is behind, for about so long."""
        self._apply(self._open(), self._behind, until=self._clock.monotonic() + seconds)

    def fresh(self, owners: Sequence[str]) -> store.Store:
        """The index, in step with the files of these owners.

        While another process writes to it, it is given as it is: an answer of a moment ago beats none.
        """
        index = self._open()
        until = self._clock.monotonic() + PATIENCE
        try:
            self._take_marked(index, owners)
            for owner in owners:
                self._take_seen(index, owner, until)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            _log.info("search index is being written by another process; searching what it holds")
        return index

    def rebuild(self) -> int:
        """Begin the index anew from the files of every owner; how many files it holds."""
        self.destroy()
        index = self._open()
        for owner in self._owners():
            self._take_seen(index, owner)
        return index.count_files()

    def _open(self) -> store.Store:
        if self._store is not None and self._store.replaced:
            self.close()
        if self._store is None:
            self._store = store.open_store(self.path)
            self._watch.forget()
        return self._store

    def _owners(self) -> Iterator[str]:
        yield "shared"
        for actor in self._files.dirs(layout.USERS):
            yield f"users/{actor}"
            for agent in self._files.dirs(layout.USERS / actor / "agents"):
                yield f"users/{actor}/agents/{agent}"

    def _take_marked(self, index: store.Store, owners: Sequence[str]) -> None:
        marked = [(path, places.locate(path)) for path in tuple(self._dirty)]
        mine = [path for path, place in marked if place is None or place.owner in owners]
        self._apply(index, mine, anew=True)
        self._dirty.difference_update(mine)

    def _take_seen(self, index: store.Store, owner: str, until: float | None = None) -> None:
        if not self._watch.knows(owner):
            self._watch.begin(owner, index.stamps(owner))
        seen = self._watch.look(owner)
        self._apply(index, [*seen.changed, *seen.gone], until=until)

    def _apply(
        self, index: store.Store, paths: Sequence[str], *, anew: bool = False, until: float | None = None
    ) -> None:
        left = set(self._behind)
        for start in range(0, len(paths), BATCH):
            if until is not None and start and self._clock.monotonic() >= until:
                left.update(paths[start:])
                break
            with index.writing():
                for path in paths[start : start + BATCH]:
                    self._take(index, path, anew=anew)
            left.difference_update(paths[start : start + BATCH])
        self._behind = sorted(left)

    def _take(self, index: store.Store, path: str, *, anew: bool) -> None:
        place = places.locate(path)
        if place is None:
            return
        stamp = self._watch.stamp(path)
        known = index.known(path)
        if stamp is None:
            index.drop(path)
        elif known is None or known.stamp != stamp or (anew and not path.endswith(".jsonl")):
            self._read(index, place, stamp, known)
        self._watch.indexed(place.owner, path, stamp)

    def _read(self, index: store.Store, place: places.Place, stamp: store.Stamp, known: store.Known | None) -> None:
        if place.path.endswith(".jsonl"):
            self._read_talk(index, place, stamp, known)
            return
        data = self._files.read(PurePosixPath(place.path), limit=content.MAX_FILE)
        if data is None:
            index.drop(place.path)
        elif place.type in ASSETS:
            metadata = self._files.read(PurePosixPath(watch.metadata_of(place.path)))
            index.put(place, stamp, content.asset(data, metadata or b""))
        else:
            index.put(place, stamp, content.note(data, self._tags(place.path)))

    def _read_talk(
        self, index: store.Store, place: places.Place, stamp: store.Stamp, known: store.Known | None
    ) -> None:
        rel = PurePosixPath(place.path)
        head = content.head_of(self._files.read(rel, limit=content.HEAD) or b"")
        grown = known if known is not None and _has_grown(known, stamp, head) else None
        start = 0 if grown is None else grown.done
        data = self._files.read(rel, start=start)
        if data is None:
            index.drop(place.path)
        elif grown is None:
            index.put(place, stamp, content.talk(data, start=0, head=head))
        else:
            index.extend(grown, place, stamp, content.talk(data, start=start, head=head))


def _has_grown(known: store.Known, stamp: store.Stamp, head: bytes) -> bool:
    same = (known.head, known.stamp.inode) == (head, stamp.inode)
    return same and content.HEAD <= known.done < stamp.size


def is_busy(error: sqlite3.Error) -> bool:
    """True when another process holds the index; it is not damaged."""
    return isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in ("locked", "busy"))


def is_damage(error: sqlite3.Error) -> bool:
    """True when making the index anew may help: not for a mistake in what it was asked."""
    return isinstance(error, sqlite3.DatabaseError) and not any(
        word in str(error) for word in ("locked", "busy", "syntax", "too many", "full")
    )
