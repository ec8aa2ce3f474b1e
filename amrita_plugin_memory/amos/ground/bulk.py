"""Many files at once, for packages: read a whole tree, write a whole new one. Blocks.

Reading goes by directory handles, so that a file costs two system calls and no link is ever followed. Writing is into a
folder nobody else knows, each file made new; `settle` brings all of it to the disk at the end, which is what makes ten
thousand files cheaper than ten thousand times one.
"""

from __future__ import annotations

import os
import stat as stat_bits
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_FEW: Final = 32  # files that are synced one by one


@dataclass(frozen=True, slots=True)
class Bulk:
    """One file of a tree: its path relative to the root with ``/``, its bytes, its modification time in seconds."""

    path: str
    data: bytes
    mtime: int


def read_tree(root: Path, rel: str, wanted: Callable[[str, bool], bool]) -> Iterator[Bulk]:
    """Every regular file at or below ``rel``, sorted; ``wanted(path, is_folder)`` says what is entered or read.

    Links and special files are left out. A file that vanishes meanwhile is left out too.
    """
    top = root / rel if rel else root
    try:
        info = top.lstat()
    except OSError:
        return
    if stat_bits.S_ISREG(info.st_mode):
        found = _read(str(top), rel)
        if found is not None and wanted(rel, False):
            yield found
    elif stat_bits.S_ISDIR(info.st_mode) and (not rel or wanted(rel, True)):
        yield from _read_folder(str(top), rel, wanted)


def _read_folder(folder: str, rel: str, wanted: Callable[[str, bool], bool]) -> Iterator[Bulk]:
    waiting = _entries(folder, rel)  # the next one last; a generator in a generator would cost more than the reading
    while waiting:
        path, entry = waiting.pop()
        if entry.is_dir(follow_symlinks=False):
            if wanted(path, True):
                waiting += _entries(entry.path, path)
        elif entry.is_file(follow_symlinks=False) and wanted(path, False):
            file = _read(entry.path, path)
            if file is not None:
                yield file


def _entries(folder: str, rel: str) -> list[tuple[str, os.DirEntry[str]]]:
    """What is in a folder, sorted backwards."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name, reverse=True)
    except OSError:
        return []
    return [(f"{rel}/{entry.name}" if rel else entry.name, entry) for entry in found]


def _read(name: str, path: str) -> Bulk | None:
    try:
        fd = os.open(name, _READ)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        if not stat_bits.S_ISREG(info.st_mode):
            return None
        data = os.read(fd, info.st_size + 1)
        while len(data) < info.st_size:
            more = os.read(fd, info.st_size - len(data))
            if not more:
                break
            data += more
    finally:
        os.close(fd)
    return Bulk(path, data, int(info.st_mtime))


@dataclass(slots=True)
class NewTree:
    """A tree that is being written below ``root``, a folder that was made for it."""

    root: Path
    sync: bool = True
    count: int = 0
    _folders: set[str] = field(default_factory=set[str])
    _unsynced: list[str] = field(default_factory=list[str])
    _base: str = ""

    def __post_init__(self) -> None:
        """Spell the root once: turning a path into text ten thousand times is no small cost."""
        self._base = str(self.root)

    def write(self, path: str, data: bytes) -> None:
        """Make one file, 0600, in folders of 0700; a path that is there already raises FileExistsError."""
        folder, _, _ = path.rpartition("/")
        if folder not in self._folders:
            (self.root / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folders.add(folder)
        fd = os.open(f"{self._base}/{path}", _NEW, 0o600)
        try:
            written = os.write(fd, data)
            while written < len(data):
                written += os.write(fd, memoryview(data)[written:])
        finally:
            os.close(fd)
        self.count += 1
        self._unsynced.append(path)

    def settle(self) -> None:
        """Bring everything that was written to the disk."""
        if not self.sync:
            return
        if len(self._unsynced) > _FEW and hasattr(os, "sync"):
            os.sync()
        else:
            for path in self._unsynced:
                _sync_file(f"{self._base}/{path}")
        self._unsynced.clear()


def _sync_file(path: str) -> None:
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_new(target: Path, chunks: Iterator[bytes], *, sync: bool = True) -> int:
    """Write a file of its own, 0600, beside its place and rename it there; its size. Nothing is left when it fails."""
    temp = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    size = 0
    try:
        fd = os.open(temp, _NEW, 0o600)
        try:
            for chunk in chunks:
                view = memoryview(chunk)
                while view:
                    view = view[os.write(fd, view) :]
                size += len(chunk)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        temp.replace(target)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    return size


def read_chunks(source: Path, size: int = 1 << 18) -> Iterator[bytes]:
    """The bytes of any file, piece by piece."""
    fd = os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        while chunk := os.read(fd, size):
            yield chunk
    finally:
        os.close(fd)


def sync_folders(folders: set[Path]) -> None:
    """Bring names that were made, moved or removed in these folders to the disk."""
    if os.name == "nt":  # folders cannot be opened there
        return
    for folder in folders:
        try:
            fd = os.open(folder, os.O_RDONLY)
        except OSError:
            continue
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
