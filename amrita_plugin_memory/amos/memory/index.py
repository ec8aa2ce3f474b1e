"""``index.json``: keywords and tags of files, as the reference implementation reads and writes it, without its cost.

A small index is rewritten for each change. A big one gets its changes appended to ``index.journal``, one line each, and
`flush` folds them in: when the journal has grown to a quarter of the index, when the library is idle, before an export
and at the end. The truth is the files: `rebuild` makes the index anew and keeps the tags, which stand nowhere else.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, cast

from amrita_plugin_memory.amos.ground import FileRoot, Stamp, layout, uris
from amrita_plugin_memory.amos.ground.formats import decode, dump_json, dump_line, load_object, load_records

_SMALL: Final = 64 * 1024  # bytes up to which an index is rewritten for each change
_FOLDING: Final = PurePosixPath("index.journal.folding")
_BROKEN: Final = PurePosixPath("index.json.bak")
_WORD: Final = re.compile(r"[A-Za-z0-9_]+|[\u4e00-\u9fff]+")
_MAX_KEYWORDS: Final = 20
_DEFINITIONS: Final = {"tools": "definition.md", "pages": "description.md", "APPs": "manifest.json"}

Entries = dict[str, dict[str, Any]]


def keywords(text: str) -> list[str]:
    """The first twenty words of a text, in order, as the reference implementation picks them."""
    found = _WORD.finditer(text)
    return [match.group() for match, _ in zip(found, range(_MAX_KEYWORDS), strict=False)]


def entry_for(path: PurePosixPath, text: str) -> dict[str, Any] | None:
    """The entry of a workflow, a knowledge entry or an asset's definition; None for a file that is not indexed."""
    parts = path.parts[1:] if path.parts[0] == "shared" else path.parts[2:]
    match parts:
        case ("workflows", name) if name.endswith(".md"):
            found = {"kind": "memory", "type": "workflow", "name": name[:-3]}
        case ("knowledge", domain, name) if name.endswith(".md"):
            found = {"kind": "memory", "type": "knowledge", "name": f"{domain}/{name[:-3]}"}
        case ("assets", folder, name, file) if _DEFINITIONS.get(folder) == file:
            word = {folder: word for word, folder in layout.ASSET_DIRS.items()}[folder]
            found = {"kind": "asset", "asset_type": word, "name": name, "description_short": ""}
        case _:
            return None
    return {**found, "keywords": keywords(text), "tags": [], "uri": _short(path, found)}


def _short(path: PurePosixPath, found: Mapping[str, Any]) -> str:
    if found["kind"] == "asset":
        return f"{uris.SCHEME}assets/{found['asset_type']}/{found['name']}"
    return f"{uris.SCHEME}{'workflows' if found['type'] == 'workflow' else 'knowledge'}/{found['name']}"


@dataclass(slots=True)
class Index:
    """The index of one root; safe between threads and processes. Does nothing when it is switched off."""

    files: FileRoot
    enabled: bool = True
    _base: tuple[Stamp | None, Entries] = (None, {})
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def put(self, path: PurePosixPath, text: str) -> None:
        """Index a file that was written; its tags stay."""
        entry = entry_for(path, text) if self.enabled else None
        if entry is not None:
            self.put_entry(path, entry)

    def put_entry(self, path: PurePosixPath, entry: Mapping[str, Any]) -> None:
        """Set the entry of a file; tags it has already stay."""
        self._change({"op": "put", "path": str(path), "entry": dict(entry)})

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
        """Every entry by relative path, journal included; not to be changed."""
        while True:
            with self._guard:
                stamp = self.files.stamp(layout.INDEX)
                if self._base[0] != stamp or stamp is None:
                    self._base = (stamp, self._load() or {})
                base = self._base[1]
            changes = [*self._records(_FOLDING), *self._records(layout.INDEX_JOURNAL)]
            if self.files.stamp(layout.INDEX) == stamp:  # else a flush has moved the journal meanwhile
                return _applied(base, changes) if changes else base

    def pending(self) -> int:
        """Bytes of the journal that are not folded in."""
        stamps = [self.files.stamp(path) for path in (_FOLDING, layout.INDEX_JOURNAL)]
        return sum(stamp.size for stamp in stamps if stamp is not None)

    def is_due(self) -> bool:
        """True when the journal has grown so far that folding it in costs little per change."""
        stamp = self.files.stamp(layout.INDEX)
        return self.pending() > max(_SMALL, 0 if stamp is None else stamp.size // 4)

    def flush(self) -> None:
        """Fold the journal into ``index.json``; what a killed flush left is folded in as well."""
        if self.enabled and self.pending():
            with self.files.lock(layout.INDEX, timeout=30.0, keep_alive=True):
                self._fold([])

    def rebuild(self) -> int:
        """Make the index anew from the files, tags kept; how many entries it has."""
        with self.files.lock(layout.INDEX, timeout=30.0, keep_alive=True):
            old = _applied(self._load() or {}, self._take_journal())
            new = self._from_files()
            for path, entry in old.items():
                if path in new:
                    new[path] = {**new[path], **{k: v for k, v in entry.items() if k not in new[path]}}
                    new[path]["tags"] = _tags(entry)
                elif _tags(entry) and self._is_file(path):
                    new[path] = {"tags": _tags(entry)}
            self.files.write(layout.INDEX, dump_json(new))
            self.files.delete(_FOLDING)
        return len(new)

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

    def _fold(self, more: list[dict[str, Any]]) -> None:
        base = self._load()
        if base is None:
            self.files.move(layout.INDEX, _BROKEN)
            base = self._from_files()
        new = _applied(base, [*self._take_journal(), *more])
        self.files.write(layout.INDEX, dump_json(new))
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
        return list(self._records(_FOLDING))

    def _load(self) -> Entries | None:
        """``index.json`` as it is; empty when it is not there, None when it cannot be read."""
        data = self.files.read(layout.INDEX)
        if not data:
            return {}
        found = load_object(data)
        if found is None:
            return None
        return {path: cast("dict[str, Any]", entry) for path, entry in found.items() if isinstance(entry, dict)}

    def _records(self, path: PurePosixPath) -> list[dict[str, Any]]:
        data = self.files.read(path)
        return load_records(data) if data else []

    def _from_files(self) -> Entries:
        found: Entries = {}
        for path in self._indexable():
            entry = entry_for(path, decode(self.files.read(path) or b""))
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


def _applied(base: Mapping[str, Mapping[str, Any]], changes: list[dict[str, Any]]) -> Entries:
    """Entries after the changes, in order. Doing a change twice is the same as doing it once."""
    new: Entries = dict(cast("Entries", base))
    for change in changes:
        path = str(change.get("path", ""))
        old = new.get(path, {})
        match change.get("op"):
            case "put":
                new[path] = {**old, **change.get("entry", {}), "tags": _tags(old)}
            case "drop":
                new.pop(path, None)
            case "tag":
                new[path] = {**old, "tags": [*_without(old, change), change["tag"]]}
            case "untag":
                if path in new:
                    new[path] = {**old, "tags": _without(old, change)}
            case _:
                pass
    return new


def _tags(entry: Mapping[str, Any]) -> list[str]:
    found = entry.get("tags")
    return [str(tag) for tag in cast("list[object]", found)] if isinstance(found, list) else []


def _without(entry: Mapping[str, Any], change: Mapping[str, Any]) -> list[str]:
    return [tag for tag in _tags(entry) if tag != change.get("tag")]
