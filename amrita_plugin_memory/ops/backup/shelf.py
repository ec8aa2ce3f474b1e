"""Backup files by name: which there are, which name is free, and which may go. Blocking; a few calls of the system."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Collection as Several
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from amrita_plugin_memory.kernel.errors import NotFound

# The published plugin lists and prunes ``embed_backup_*.json``; manifests must not look like that.
_NAME: Final = re.compile(r"embed_backup_(\d{8}_\d{6})(?:_(\d+))?\.json")
MANIFEST: Final = ".manifest"


@dataclass(frozen=True, slots=True)
class Backup:
    """One backup file. ``made`` comes from its name, in UTC; ``bytes`` is its size."""

    path: Path
    made: datetime
    number: int
    bytes: int

    @property
    def manifest(self) -> Path:
        """The file beside it that says what is in it; backups of the published plugin have none."""
        return manifest_of(self.path)


def manifest_of(path: Path) -> Path:
    """``embed_backup_….manifest`` beside ``embed_backup_….json``."""
    return path.with_suffix(MANIFEST)


def listed(folder: Path) -> list[Backup]:
    """The backups of a folder, newest first; a missing folder has none."""
    if not folder.is_dir():
        return []
    found = [backup for path in folder.iterdir() if (backup := _read(path)) is not None]
    return sorted(found, key=lambda b: (b.made, b.number), reverse=True)


def find(folder: Path, given: str) -> Path:
    """The backup that a person means: a path, or a file name in the folder, with or without its ending.

    Raises:
        NotFound: there is no such file.

    """
    for path in (Path(given), folder / given, folder / f"{given}.json"):
        if path.is_file():
            return path
    raise NotFound(f"没有备份文件 {given[-80:]}，请运行 ambot memory backup list 查看")


def publish(part: Path, folder: Path, now: datetime) -> Path:
    """Give a finished file its name, one that no other backup has, also when two are made in one second."""
    stamp = now.astimezone(UTC).strftime("%Y%m%d_%H%M%S")
    for number in range(1000):
        path = folder / f"embed_backup_{stamp}{f'_{number}' if number else ''}.json"
        try:
            os.link(part, path)
        except FileExistsError:
            continue
        except OSError:  # a file system without hard links
            if path.exists():
                continue
            part.rename(path)
            return path
        part.unlink()
        return path
    raise NotFound("同一秒内的备份太多，请稍后再试")


@contextlib.contextmanager
def held(path: Path) -> Generator[Path]:
    """The same file under a name of ours, so that no pruning takes it away while it is read; blocking."""
    own = path.with_name(f".part-{secrets.token_hex(6)}-restore")
    try:
        os.link(path, own)
    except OSError:  # no hard links, or no right to make one here
        own = path
    try:
        yield own
    finally:
        if own != path:
            own.unlink(missing_ok=True)


def surplus(folder: Path, *, keep: int, spare: Several[Path] = ()) -> list[Path]:
    """The backups beyond the newest ``keep``, without those in use."""
    used = {path.resolve() for path in spare}
    return [backup.path for backup in listed(folder)[keep:] if backup.path.resolve() not in used]


def remove(paths: list[Path]) -> None:
    """Delete backups and their manifests."""
    for path in paths:
        path.unlink(missing_ok=True)
        manifest_of(path).unlink(missing_ok=True)


def _read(path: Path) -> Backup | None:
    match = _NAME.fullmatch(path.name)
    if match is None or not path.is_file():
        return None
    try:
        made = datetime.strptime(match[1], "%Y%m%d_%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return Backup(path, made, int(match[2] or 0), path.stat().st_size)
