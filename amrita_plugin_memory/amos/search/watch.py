"""Which files of an owner are new, changed or gone, found by asking the disk as little as possible.

A folder whose modification time stands still has the files it had; only transcripts (``*.jsonl``) grow in place, so
they are asked one by one. Everything is asked again every `FULL` seconds, for those who edit a note in place.
"""

from __future__ import annotations

import os
import stat as stat_bits
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .places import ASSET_TEXTS, locate
from .store import Stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amrita_plugin_memory.kernel.clock import Clock

FULL: Final = 300.0  # seconds
SHARE: Final = 10  # a look may take a tenth of the time at most
OWNERS: Final = 256  # remembered at once
_RACY: Final = 100_000_000  # ns; a folder changed so lately may change again within the same tick of its clock
_MAX_DEPTH: Final = 12
_UNSETTLED: Final = -1
_MISSING: Final = -2


@dataclass(slots=True)
class _Folder:
    mtime: int
    files: dict[str, Stamp]
    folders: tuple[str, ...]
    growing: tuple[str, ...]
    fresh: bool = True


@dataclass(slots=True)
class _Owner:
    indexed: dict[str, Stamp]
    folders: dict[str, _Folder] = field(default_factory=dict[str, _Folder])
    full_at: float | None = None
    rested_until: float = 0.0


@dataclass(frozen=True, slots=True)
class Changes:
    """Files whose stamp is not the indexed one, and files that are gone."""

    changed: dict[str, Stamp]
    gone: tuple[str, ...]


class Watch:
    """What is known of the files below a root, by owner."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._owners: OrderedDict[str, _Owner] = OrderedDict()

    def knows(self, owner: str) -> bool:
        """True when the owner was begun and not forgotten."""
        return owner in self._owners

    def begin(self, owner: str, indexed: dict[str, Stamp]) -> None:
        """Start with what the index holds of an owner."""
        self._owners[owner] = _Owner(indexed)
        while len(self._owners) > OWNERS:
            self._owners.popitem(last=False)

    def forget(self) -> None:
        """Know nothing, as after the index was begun anew."""
        self._owners.clear()

    def indexed(self, owner: str, path: str, stamp: Stamp | None) -> None:
        """Note that the index now holds this stamp of a file (None: nothing of it)."""
        known = self._owners.get(owner)
        if known is None:
            return
        if stamp is None:
            known.indexed.pop(path, None)
        else:
            known.indexed[path] = stamp

    def look(self, owner: str) -> Changes:
        """Look at the files of an owner that was begun; nothing is looked at while the last look is paid off."""
        known = self._owners[owner]
        self._owners.move_to_end(owner)
        begun = self._clock.monotonic()
        if begun < known.rested_until:
            return Changes({}, ())
        if known.full_at is None or begun - known.full_at >= FULL:
            known.full_at = begun
            changes = self._look_anew(owner, known)
        else:
            changes = self._look_again(owner, known)
        ended = self._clock.monotonic()
        known.rested_until = ended + SHARE * (ended - begun)
        return changes

    def _look_anew(self, owner: str, known: _Owner) -> Changes:
        known.folders = dict(self._walk(owner, 0))
        for folder in known.folders.values():
            folder.fresh = False
        present = {path: stamp for folder in known.folders.values() for path, stamp in folder.files.items()}
        changed = {path: stamp for path, stamp in present.items() if known.indexed.get(path) != stamp}
        return Changes(changed, tuple(path for path in known.indexed if path not in present))

    def _look_again(self, owner: str, known: _Owner) -> Changes:
        changed: dict[str, Stamp] = {}
        gone: set[str] = set()
        for path, folder in list(known.folders.items()):
            if _mtime(self._root / path) == folder.mtime:
                changed.update(self._grown(folder, known.indexed))
                continue
            before = dict(folder.files)
            self._rescan(known, path, folder)
            now = known.folders[path].files if path in known.folders else {}
            changed.update((p, stamp) for p, stamp in now.items() if known.indexed.get(p) != stamp)
            gone.update(p for p in before if p not in now)
        if owner not in known.folders:
            known.folders.update(self._walk(owner, 0))
        for folder in [folder for folder in known.folders.values() if folder.fresh]:
            folder.fresh = False
            changed.update((p, stamp) for p, stamp in folder.files.items() if known.indexed.get(p) != stamp)
        return Changes(changed, tuple(gone))

    def _rescan(self, known: _Owner, path: str, folder: _Folder) -> None:
        found = self._scan(path)
        if found is None:
            known.folders.pop(path, None)
            return
        known.folders[path] = found
        for name in set(found.folders) - set(folder.folders):
            known.folders.update(self._walk(f"{path}/{name}", path.count("/") + 1))

    def _grown(self, folder: _Folder, indexed: dict[str, Stamp]) -> dict[str, Stamp]:
        stamps = ((path, self.stamp(path)) for path in folder.growing)
        return {path: stamp for path, stamp in stamps if stamp is not None and indexed.get(path) != stamp}

    def _walk(self, path: str, depth: int) -> Iterator[tuple[str, _Folder]]:
        found = self._scan(path)
        if found is None:
            return
        yield path, found
        if depth < _MAX_DEPTH:
            for name in found.folders:
                yield from self._walk(f"{path}/{name}", depth + 1)

    def _scan(self, path: str) -> _Folder | None:
        mtime = _mtime(self._root / path)
        if mtime == _MISSING:
            return None
        files: dict[str, Stamp] = {}
        folders: list[str] = []
        try:
            with os.scandir(self._root / path) as entries:
                for entry in entries:
                    if entry.name[0] != "." and _is_utf8(entry.name):
                        self._take(path, entry, files, folders)
        except OSError:
            return None
        if time.time_ns() - mtime < _RACY:
            mtime = _UNSETTLED
        return _Folder(mtime, files, tuple(folders), tuple(p for p in files if p.endswith(".jsonl")))

    def _take(self, path: str, entry: os.DirEntry[str], files: dict[str, Stamp], folders: list[str]) -> None:
        whole = f"{path}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if _is_entered(whole):
                folders.append(entry.name)
        elif locate(whole) is not None and entry.is_file(follow_symlinks=False):
            stamp = self.stamp(whole)
            if stamp is not None:
                files[whole] = stamp

    def stamp(self, path: str) -> Stamp | None:
        """How a file looks now (an asset's definition: with its metadata); None when it is not there."""
        stamp = _stamp(self._root / path)
        if stamp is None or "/assets/" not in path:
            return stamp
        beside = _stamp(self._root / metadata_of(path))
        return stamp if beside is None else Stamp(max(stamp.mtime, beside.mtime), stamp.size + beside.size, stamp.inode)


def metadata_of(path: str) -> str:
    """The metadata file beside an asset's definition."""
    return path.rpartition("/")[0] + "/metadata.json"


def _is_entered(path: str) -> bool:
    parts = path.split("/")
    at = 1 if parts[0] == "shared" else 4 if parts[2:3] == ["agents"] else 2
    if parts[2:3] == ["agents"] and len(parts) < 5:
        return False  # another owner's
    rest = parts[at:]
    if rest[:1] != ["assets"]:
        return True
    return len(rest) == 1 or (rest[1] in ASSET_TEXTS and len(rest) <= 3)


def _is_utf8(name: str) -> bool:
    return name.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in name)


def _mtime(path: Path) -> int:
    try:
        info = os.lstat(path)
    except OSError:
        return _MISSING
    return info.st_mtime_ns if stat_bits.S_ISDIR(info.st_mode) else _MISSING


def _stamp(path: Path) -> Stamp | None:
    try:
        info = path.lstat()
    except OSError:
        return None
    return Stamp(info.st_mtime_ns, info.st_size, info.st_ino) if stat_bits.S_ISREG(info.st_mode) else None
