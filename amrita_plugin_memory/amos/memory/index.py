"""``index.json``: keywords and tags of files, as the reference implementation reads and writes it, without its cost.

A small index is rewritten for each change. A big one gets its changes appended to ``index.journal``, one line each, and
`flush` folds them in some time later and at the end. The truth is the files: `rebuild` makes the index anew and keeps
the tags, which stand nowhere else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, cast

from amrita_plugin_memory.amos.ground import FileRoot, Stamp, layout
from amrita_plugin_memory.amos.ground.formats import decode, dump_line, dump_map, load_object, load_records

from .entries import Entries, apply, entry_for, merge, tags_of

_SMALL: Final = 16 * 1024  # bytes up to which an index is rewritten for each change
_FOLDING: Final = PurePosixPath("index.journal.folding")
_BROKEN: Final = PurePosixPath("index.json.bak")
_PARTS: Final = (layout.INDEX, _FOLDING, layout.INDEX_JOURNAL)


@dataclass(slots=True)
class _View:
    """The entries as they were at these states of the files; the journal was read up to ``read``."""

    index: Stamp | None
    folding: Stamp | None
    journal: int
    entries: Entries
    read: int = 0


@dataclass(slots=True)
class Index:
    """The index of one root; safe between threads and processes. Does nothing when it is switched off."""

    files: FileRoot
    enabled: bool = True
    _view: _View | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def put(self, path: PurePosixPath, text: str) -> None:
        """Index a file that was written; its tags stay."""
        entry = self.entry(path.parts, text)
        if entry is not None:
            self.put_entry(path, entry)

    def entry(self, parts: Sequence[str], text: str) -> dict[str, Any] | None:
        """What the index would say of a file; None when it is not indexed. Changes nothing."""
        return entry_for(parts, text) if self.enabled else None

    def put_entry(self, path: PurePosixPath, entry: Mapping[str, Any]) -> None:
        """Set the entry of a file; tags it has already stay."""
        self._change({"op": "put", "path": str(path), "entry": dict(entry)})

    def put_entries(self, entries: Mapping[str, dict[str, Any]]) -> None:
        """Set many entries at once, their tags added to those that are there."""
        if self.enabled and entries:
            with self.files.lock(layout.INDEX, timeout=30.0, keep_alive=True):
                self._fold([], entries)

    def drop(self, path: PurePosixPath) -> None:
        """Forget a file that is gone."""
        self._change({"op": "drop", "path": str(path)})

    def tag(self, path: PurePosixPath, tag: str) -> None:
        """Give a file a tag."""
        self._change({"op": "tag", "path": str(path), "tag": tag})

    def untag(self, path: PurePosixPath, tag: str) -> None:
        """Take a tag from a file."""
        self._change({"op": "untag", "path": str(path), "tag": tag})

    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """Every entry by relative path, journal included; a snapshot of the caller's own."""
        with self._guard:
            return dict(self._seen())

    def tags_of(self, path: str) -> tuple[str, ...]:
        """The tags of one file."""
        with self._guard:
            return tuple(tags_of(self._seen().get(path, {})))

    def tagged(self, tag: str) -> list[str]:
        """Paths of files with this tag, sorted."""
        with self._guard:
            return sorted(path for path, entry in self._seen().items() if tag in tags_of(entry))

    def pending(self) -> int:
        """Bytes of the journal that are not folded in."""
        stamps = [self.files.stamp(path) for path in (_FOLDING, layout.INDEX_JOURNAL)]
        return sum(stamp.size for stamp in stamps if stamp is not None)

    def flush(self) -> None:
        """Fold the journal into ``index.json``; what a killed flush left is folded in as well."""
        if self.enabled and self.pending():
            with self.files.lock(layout.INDEX, timeout=30.0, keep_alive=True):
                self._fold([])

    def rebuild(self) -> int:
        """Make the index anew from the files, tags kept; how many entries it has."""
        with self.files.lock(layout.INDEX, timeout=30.0, keep_alive=True):
            old = self._load() or {}
            apply(old, self._take_journal())
            new = self._from_files()
            for path, entry in old.items():
                if path in new:
                    new[path] = {**new[path], **{k: v for k, v in entry.items() if k not in new[path]}}
                    new[path]["tags"] = tags_of(entry)
                elif tags_of(entry) and self._is_file(path):
                    new[path] = {"tags": tags_of(entry)}
            self.files.write(layout.INDEX, dump_map(new))
            self.files.delete(_FOLDING)
        return len(new)

    def _seen(self) -> Entries:
        """The view of the index, brought up to what is on the disk; only what the journal gained is read."""
        while True:
            index, folding, journal = (self.files.stamp(path) for path in _PARTS)
            view, inode = self._view, 0 if journal is None else journal.inode
            if view is None or (view.index, view.folding, view.journal) != (index, folding, inode):
                view = _View(index, folding, inode, self._load() or {})
                apply(view.entries, load_records(self.files.read(_FOLDING) or b""))
            if journal is not None and journal.size > view.read:
                data = self.files.read(layout.INDEX_JOURNAL, start=view.read) or b""
                whole = data[: data.rfind(b"\n") + 1]
                apply(view.entries, load_records(whole))
                view.read += len(whole)
            if self.files.stamp(layout.INDEX) == index and self.files.stamp(_FOLDING) == folding:
                self._view = view
                return view.entries
            self._view = None  # a flush moved the journal meanwhile

    def _change(self, change: dict[str, Any]) -> None:
        if not self.enabled:
            return
        stamp = self.files.stamp(layout.INDEX)
        if (stamp is None or stamp.size <= _SMALL) and not self.pending():
            with self.files.lock(layout.INDEX):
                self._fold([change])
            return
        with self.files.lock(layout.INDEX_JOURNAL):
            self.files.append(layout.INDEX_JOURNAL, dump_line(change), sync=change["op"] in ("tag", "untag"))

    def _fold(self, more: list[dict[str, Any]], new: Mapping[str, dict[str, Any]] | None = None) -> None:
        base = self._load()
        if base is None:
            self.files.move(layout.INDEX, _BROKEN)
            base = self._from_files()
        apply(base, [*self._take_journal(), *more])
        merge(base, new or {})
        self.files.write(layout.INDEX, dump_map(base))
        self.files.delete(_FOLDING)

    def _take_journal(self) -> list[dict[str, Any]]:
        """Changes to fold in. New ones go to a new journal from here on; a set already taken is taken again first."""
        with self.files.lock(layout.INDEX_JOURNAL):
            left = self.files.read(_FOLDING)
            if left is not None:
                self.files.append(_FOLDING, self.files.read(layout.INDEX_JOURNAL) or b"")
                self.files.delete(layout.INDEX_JOURNAL)
            else:
                self.files.move(layout.INDEX_JOURNAL, _FOLDING)
        return load_records(self.files.read(_FOLDING) or b"")

    def _load(self) -> Entries | None:
        """``index.json`` as it is; empty when it is not there, None when it cannot be read."""
        data = self.files.read(layout.INDEX)
        if not data:
            return {}
        found = load_object(data)
        if found is None:
            return None
        return {path: cast("dict[str, Any]", entry) for path, entry in found.items() if isinstance(entry, dict)}

    def _from_files(self) -> Entries:
        found: Entries = {}
        for path in self._indexable():
            entry = entry_for(path.parts, decode(self.files.read(path) or b""))
            if entry is not None:
                found[str(path)] = entry
        return found

    def _indexable(self) -> Iterator[PurePosixPath]:
        owners = [layout.SHARED, *(layout.USERS / actor for actor in self.files.dirs(layout.USERS))]
        for owner in owners:
            for folder in ("workflows", "knowledge", "assets"):
                yield from self.files.walk(owner / folder)

    def _is_file(self, path: str) -> bool:
        return not path.startswith("/") and ".." not in path.split("/") and self.files.exists(PurePosixPath(path))
