"""The only open() of the library: a `FileRoot` reads and writes files below one folder, and nowhere else.

Writes are atomic (temp file, fsync, rename, fsync of the folder) or appended and synced; files are 0600 and folders
0700; no symbolic link below the root is ever followed. Paths are relative `PurePosixPath`s, made by `layout`.
Everything here blocks: a service calls it through ``asyncio.to_thread``.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat as stat_bits
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from amrita_plugin_memory.kernel.errors import Corrupt, InvalidInput

from .casing import Spellings, is_blind
from .formats import decode, dump_json, encode, load_object
from .layout import PRIVATE
from .locks import TIMEOUT, LockTable, PathLock

_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_LEFTOVER: Final = re.compile(r"\.amos-[0-9a-f]{16}\.tmp|.+\.[0-9a-f]{12}\.tmp")
_TRASH: Final = "trash-"
_DATASYNC: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells one state of a file from another."""

    inode: int
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class FileRoot:
    """Files below ``root``, an absolute path; ``sync=False`` leaves out every fsync (tests, throw-away roots).

    ``spellings`` watches over names on a disk that is blind to case; None elsewhere.
    """

    root: Path
    sync: bool = True
    spellings: Spellings | None = None
    _table: LockTable = field(default_factory=LockTable)

    @classmethod
    def open(cls, root: Path | str, *, sync: bool = True) -> FileRoot:
        """Make the root folder if it is not there, and resolve it once."""
        folder = Path(root).expanduser()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = folder.resolve()
        return cls(folder, sync, Spellings() if is_blind(folder) else None)

    # -- places ---------------------------------------------------------------------------------------------------

    def path(self, rel: PurePosixPath) -> Path:
        """The absolute path, refused when a component is a symbolic link or leads out of the root.

        Raises:
            InvalidInput: an absolute path, ``..``, a symbolic link, or a name that a case-blind disk would confuse.

        """
        return Path(self._place(rel)[0])

    def _place(self, rel: PurePosixPath) -> tuple[str, os.stat_result | None]:
        """`path` as text, and what stands there; None when nothing does. Making a Path would cost more than looking."""
        parts = rel.parts
        if rel.is_absolute() or ".." in parts:
            raise InvalidInput(f"路径 {str(rel)[:60]!r} 超出了根目录")
        here, info = str(self.root), None
        try:
            for part in parts:
                if self.spellings is not None:
                    self.spellings.check(here, part)
                here = f"{here}{os.sep}{part}"
                info = os.lstat(here)
                if stat_bits.S_ISLNK(info.st_mode):
                    raise InvalidInput(f"路径 {str(rel)[:60]!r} 经过符号链接，已拒绝")
        except (FileNotFoundError, NotADirectoryError):
            return str(self.root.joinpath(*parts)), None  # nothing there yet, so nothing below it either
        return here, info

    def lock(self, rel: PurePosixPath, *, timeout: float = TIMEOUT, keep_alive: bool = False) -> PathLock:
        """The lock ``{rel}.lock``, for ``with`` in a thread or ``async with`` on the loop; its folder is made."""
        path = self.path(rel)
        if not path.parent.is_dir():
            self.make_dir(rel.parent)
        return PathLock(path, self._table, timeout, keep_alive)

    def make_dir(self, rel: PurePosixPath) -> Path:
        """The folder, made 0700 with its parents."""
        path = self.path(rel)
        if not path.is_dir():
            for folder in [*reversed(path.parents), path]:
                if not folder.is_dir():
                    folder.mkdir(mode=0o700, exist_ok=True)
                    self._sync_dir(folder.parent)
        return path

    # -- reading --------------------------------------------------------------------------------------------------

    def stamp(self, rel: PurePosixPath) -> Stamp | None:
        """Inode, size and time of a regular file; None when it is not there."""
        info = self._place(rel)[1]
        if info is None or not stat_bits.S_ISREG(info.st_mode):
            return None
        return Stamp(info.st_ino, info.st_size, info.st_mtime_ns)

    def exists(self, rel: PurePosixPath) -> bool:
        """True for a regular file."""
        return self.stamp(rel) is not None

    def read(self, rel: PurePosixPath, *, start: int = 0, limit: int | None = None) -> bytes | None:
        """Bytes of a file from ``start`` to its end; None when it is not there.

        ``limit`` is for who only looks: what is written back must have been read whole.
        """
        try:
            fd = os.open(self._place(rel)[0], os.O_RDONLY | _NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with os.fdopen(fd, "rb") as file:
            if stat_bits.S_ISDIR(os.fstat(fd).st_mode):
                return None
            if start:
                file.seek(start)
            return file.read(-1 if limit is None else limit)

    def read_text(self, rel: PurePosixPath) -> str | None:
        """Text of a file, read as `formats.decode` does; None when it is not there."""
        data = self.read(rel)
        return None if data is None else decode(data)

    def read_object(self, rel: PurePosixPath) -> dict[str, Any] | None:
        """A JSON object; None when the file is not there.

        Raises:
            Corrupt: the file is there and holds no JSON object.

        """
        data = self.read(rel)
        if data is None:
            return None
        value = load_object(data)
        if value is None:
            raise Corrupt(f"文件 {rel} 已损坏，请用 amos doctor --fix 修复")
        return value

    def names(self, rel: PurePosixPath) -> list[str]:
        """Names in a folder, sorted; hidden ones, temp files and locks left out; empty when it is not there."""
        try:
            found = os.listdir(self.path(rel))  # noqa: PTH208 - names are all that is wanted
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in found if name[0] != "." and not name.endswith((".tmp", ".lock")))

    def dirs(self, rel: PurePosixPath) -> list[str]:
        """Names of the real folders in a folder, sorted."""
        return sorted(entry.name for entry in self.scan(rel) if entry.is_dir(follow_symlinks=False))

    def scan(self, rel: PurePosixPath) -> list[os.DirEntry[str]]:
        """Directory entries of a folder, hidden ones, temp files and locks left out; links are among them."""
        try:
            with os.scandir(self.path(rel)) as entries:
                return [e for e in entries if e.name[0] != "." and not e.name.endswith((".tmp", ".lock"))]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, rel: PurePosixPath) -> Iterator[PurePosixPath]:
        """Every regular file below a folder, in no order; links are not followed, hidden folders are not entered."""
        for entry in self.scan(rel):
            if entry.is_dir(follow_symlinks=False):
                yield from self.walk(rel / entry.name)
            elif entry.is_file(follow_symlinks=False):
                yield rel / entry.name

    # -- writing --------------------------------------------------------------------------------------------------

    def write(self, rel: PurePosixPath, data: bytes) -> None:
        """Replace a file whole: after a crash it holds the old bytes or the new ones."""
        with self._replacing(rel) as fd:
            _write_all(fd, data)

    def write_text(self, rel: PurePosixPath, text: str) -> None:
        """Replace a text file whole."""
        self.write(rel, encode(text))

    def write_json(self, rel: PurePosixPath, value: object) -> None:
        """Replace a JSON file whole."""
        self.write(rel, dump_json(value))

    def append(self, rel: PurePosixPath, data: bytes, *, sync: bool = True) -> int:
        """Add whole lines to the end of a file and sync them; the file's size before.

        The caller holds the lock. A torn last line is closed first, so that only it is lost; when the disk is full the
        file goes back to the size it had. ``sync=False`` is for what can be made anew from other files.
        """
        with self._appending(rel) as fd:
            size = os.fstat(fd).st_size
            self._append_to(fd, size, data, sync=sync)
        return size

    def extend(self, rel: PurePosixPath, end: int, make: Callable[[Stamp, bytes], bytes]) -> None:
        """`append` what ``make`` gives, which is told the state of the file and its last ``end`` bytes."""
        with self._appending(rel) as fd:
            info = os.fstat(fd)
            os.lseek(fd, max(info.st_size - end, 0), os.SEEK_SET)
            stamp = Stamp(info.st_ino, info.st_size, info.st_mtime_ns)
            self._append_to(fd, info.st_size, make(stamp, os.read(fd, end)), sync=True)

    def truncate(self, rel: PurePosixPath, size: int) -> None:
        """Cut a file back to ``size`` bytes; nothing happens when it is not longer."""
        path = self.path(rel)
        if path.is_file() and path.lstat().st_size > size:
            fd = os.open(path, os.O_RDWR | _NOFOLLOW)
            try:
                os.ftruncate(fd, size)
                self._sync(fd)
            finally:
                os.close(fd)

    def move(self, rel: PurePosixPath, to: PurePosixPath) -> bool:
        """Rename within the root, over whatever file is there; False when ``rel`` is not there."""
        self.make_dir(to.parent)
        source, target = self.path(rel), self.path(to)
        try:
            source.replace(target)
        except FileNotFoundError:
            return False
        self._sync_dir(target.parent)
        if source.parent != target.parent:
            self._sync_dir(source.parent)
        return True

    def delete(self, rel: PurePosixPath) -> bool:
        """Remove one file; False when it was not there."""
        path = self.path(rel)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        self._sync_dir(path.parent)
        return True

    def delete_dir_if_empty(self, rel: PurePosixPath) -> None:
        """Remove a folder that holds nothing."""
        with contextlib.suppress(OSError):
            self.path(rel).rmdir()

    def delete_tree(self, rel: PurePosixPath) -> bool:
        """Remove a folder and all in it; links in it are removed, not followed. False when it was not there.

        It is gone at once, by a rename; what a kill leaves of it stands in ``.amos`` and is swept.

        Raises:
            InvalidInput: the root itself, or one of its first two levels, was named.

        """
        if len(rel.parts) < 2:
            raise InvalidInput("不能删除根目录或它的顶层文件夹")
        path = self.path(rel)
        if not path.is_dir():
            return False
        trash = self.make_dir(PRIVATE) / f"{_TRASH}{secrets.token_hex(8)}"
        path.rename(trash)
        self._sync_dir(path.parent)
        try:
            shutil.rmtree(trash)
        except FileNotFoundError:  # a sweep found it and is at the same work; what it left goes here
            shutil.rmtree(trash, ignore_errors=True)
        return True

    def sweep(self, *, older_than: float = 3600.0) -> int:
        """Remove temp files that a crash left behind, ours and the reference implementation's; how many."""
        horizon, count = time.time() - older_than, 0
        for folder, _, files in os.walk(self.root):
            for name in files:
                path = Path(folder, name)
                with contextlib.suppress(FileNotFoundError):  # a writer at work has just renamed its own
                    if _LEFTOVER.fullmatch(name) and path.lstat().st_mtime < horizon:
                        path.unlink()
                        count += 1
        for trash in self.root.joinpath(PRIVATE).glob(f"{_TRASH}*"):
            shutil.rmtree(trash, ignore_errors=True)
            count += 1
        return count

    @contextlib.contextmanager
    def _appending(self, rel: PurePosixPath) -> Generator[int]:
        path = self.path(rel)
        flags, fresh = os.O_RDWR | os.O_APPEND | _NOFOLLOW, False
        try:
            fd = os.open(path, flags)
        except FileNotFoundError:
            self.make_dir(rel.parent)
            fd, fresh = os.open(path, flags | os.O_CREAT, 0o600), True
        try:
            yield fd
        finally:
            os.close(fd)
        if fresh:
            self._sync_dir(path.parent)

    @contextlib.contextmanager
    def _replacing(self, rel: PurePosixPath) -> Generator[int]:
        path = self.path(rel)
        temp = path.with_name(f".amos-{secrets.token_hex(8)}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW
        try:
            fd = os.open(temp, flags, 0o600)
        except FileNotFoundError:
            self.make_dir(rel.parent)
            fd = os.open(temp, flags, 0o600)
        try:
            try:
                yield fd
                self._sync(fd)
            finally:
                os.close(fd)
            temp.replace(path)
        except BaseException:
            temp.unlink(missing_ok=True)
            raise
        self._sync_dir(path.parent)

    def _append_to(self, fd: int, size: int, data: bytes, *, sync: bool) -> None:
        if size and _last_byte(fd, size) != b"\n":
            data = b"\n" + data
        try:
            _write_all(fd, data)
        except OSError:
            os.ftruncate(fd, size)
            raise
        if self.sync and sync:
            _DATASYNC(fd)

    def _sync(self, fd: int) -> None:
        if self.sync:
            os.fsync(fd)

    def _sync_dir(self, folder: Path) -> None:
        if not self.sync or os.name == "nt":
            return
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _last_byte(fd: int, size: int) -> bytes:
    os.lseek(fd, size - 1, os.SEEK_SET)
    return os.read(fd, 1)
