"""Write a backup in one pass and bounded memory: the three arrays grow in three files, which are then joined."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.retrieval.fingerprint import MARKS, PROBE
from amrita_plugin_memory.vectordb.ports import Collection, Row, Scalar

from .extras import Extras
from .manifest import Manifest, Tally
from .shelf import Backup, listed, manifest_of, publish

PAGE: Final = 2_000
_STALE: Final = 86_400.0  # seconds after which an unfinished part is nobody's any more
_BLOCK: Final = 1 << 20


class _Part:
    """Three growing arrays on disk; private to this process and gone when it is closed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(folder)
        mark = secrets.token_hex(6)
        self.paths = {name: folder / f".part-{mark}-{name}" for name in ("ids", "documents", "metadatas", "whole")}
        self._files = {name: _private(path) for name, path in self.paths.items()}
        self._first = True

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            comma = b"" if self._first else b", "
            self._first = False
            self._files["ids"].write(comma + _dump(row.id))
            self._files["documents"].write(comma + _dump(row.document))
            self._files["metadatas"].write(comma + _dump(dict(row.metadata) or None))

    def join(self, head: Mapping[str, Any], extras: Iterator[bytes]) -> tuple[str, int]:
        """Write the whole file; its sha256 and its size in bytes."""
        digest, size = hashlib.sha256(), 0
        whole = self._files["whole"]
        for piece in self._pieces(head, extras):
            digest.update(piece)
            size += len(piece)
            whole.write(piece)
        whole.flush()
        os.fsync(whole.fileno())
        return digest.hexdigest(), size

    def _pieces(self, head: Mapping[str, Any], extras: Iterator[bytes]) -> Iterator[bytes]:
        yield b"{" + b"".join(_dump(key) + b": " + _dump(value) + b", " for key, value in head.items())
        for place, name in enumerate(("ids", "documents", "metadatas")):
            yield (b", " if place else b"") + _dump(name) + b": ["
            file = self._files[name]
            file.seek(0)
            while block := file.read(_BLOCK):
                yield block
            yield b"]"
        yield from extras
        yield b"}"

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        for path in self.paths.values():
            path.unlink(missing_ok=True)


async def create(
    folder: Path, collection: Collection, *, clock: Clock, extras: Extras | None = None, reason: str = ""
) -> Backup:
    """Write all rows of the collection, and what ``extras`` adds, into a new file of ``folder``; 0600, synced.

    Raises:
        StoreUnavailable: the store cannot be read, or the folder cannot be written; no half-made file stays.

    """
    now, tally, metadata = clock.now(), Tally(), await collection.metadata()
    try:
        part = await asyncio.to_thread(_Part, folder)
        try:
            async for rows in collection.pages(size=PAGE):
                await asyncio.to_thread(part.add, rows)
                for row in rows:
                    tally.add(row.metadata)
            head = {"collection": collection.name, "created_at": now.isoformat(), "collection_metadata": metadata}
            return await asyncio.to_thread(_finish, part, folder, (now, head, tally, extras or Extras(), reason))
        finally:
            await asyncio.to_thread(part.close)
    except OSError as e:
        raise StoreUnavailable(f"备份没有写成，请检查 {folder.name} 目录的空间和权限") from e


def _finish(part: _Part, folder: Path, what: tuple[datetime, dict[str, Any], Tally, Extras, str]) -> Backup:
    now, head, tally, extras, reason = what
    sha256, size = part.join(head, extras.pieces())
    path = publish(part.paths["whole"], folder, now)
    manifest = Manifest(
        file=path.name,
        bytes=size,
        sha256=sha256,
        created_at=str(head["created_at"]),
        reason=reason,
        rows=tally.rows,
        partitions=len(tally.partitions),
        scopes=dict(tally.scopes),
        memos=extras.memos_written,
        knowledge=extras.knowledge_written,
        profile=bool(extras.profile),
        fingerprint=_fingerprint(head["collection_metadata"]),
        versions=_versions(),
    )
    _write_beside(path, manifest)
    return next(backup for backup in listed(folder) if backup.path == path)


def _write_beside(path: Path, manifest: Manifest) -> None:
    target = manifest_of(path)
    part = target.with_name(f".part-{secrets.token_hex(6)}-manifest")
    with _private(part) as file:
        file.write(manifest.model_dump_json(indent=2).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)


def _fingerprint(metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {key: value for key, value in metadata.items() if key in MARKS and key != PROBE}


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str] = {}
    for name in ("amrita_plugin_memory", "chromadb"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _sweep(folder: Path) -> None:
    for path in folder.glob(".part-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE:
                path.unlink()


def _private(path: Path) -> BinaryIO:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o600), "w+b")


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
