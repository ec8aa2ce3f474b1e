"""Writing a package: straight from the files into the stream, nothing is copied first. Blocks."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from amrita_plugin_memory.amos.errors import BundleError
from amrita_plugin_memory.amos.ground import bulk, layout

from . import policy, rewrite, stream
from .limits import DEFAULT
from .reports import ExportResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from amrita_plugin_memory.amos.ground import FileRoot

    from .policy import Selection

PROTOCOL: Final = "2.0.0"
MANIFEST: Final[dict[str, Any]] = {
    "amos_version": "2.0",
    "name": "unnamed-system",
    "description": None,
    "author": "system",
    "model": None,
    "env_vars": [],
    "required_capabilities": {},
    "version": PROTOCOL,
}
_FOLDERS: Final = ("shared", "users", "tasks", "acl", "events")


class Export:
    """One package in the making."""

    def __init__(self, files: FileRoot, selection: Selection, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._files = files
        self._selection = selection
        self._entries = entries
        self._sums: dict[str, str] = {}
        self._size = 0
        self._measure = stream.Measure(DEFAULT)

    def write(self, target: Path, *, empty_ok: bool = False) -> ExportResult:
        """Write the package to ``target``, whole or not at all; of any size, and it tells when that is beyond `Limits`.

        Raises:
            BundleError: the user or agent to export does not exist; with ``empty_ok`` its package holds what is shared.

        """
        self._check(empty_ok)
        whole = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            for chunk in stream.pack(self._measured()):
                whole.update(chunk)
                self._measure.gave(len(chunk))
                yield chunk

        target.parent.mkdir(parents=True, exist_ok=True)
        packed = bulk.write_new(target, hashed(), sync=self._files.sync)
        return ExportResult(str(target), len(self._sums), self._size, packed, whole.hexdigest(), not self._measure.fits)

    def _check(self, empty_ok: bool) -> None:
        selection = self._selection
        if selection.actor is None:
            return
        home = layout.user_dir(selection.actor)
        if selection.agent is not None:
            home = layout.agent_dir(selection.actor, selection.agent)
        if not empty_ok and not self._files.path(home).is_dir():
            raise BundleError("要导出的用户或 Agent 不存在，请核对名称")

    def _measured(self) -> Iterator[tuple[str, bytes, int]]:
        for member in self._members():
            self._measure.took(member[0], len(member[1]))
            yield member

    def _members(self) -> Iterator[tuple[str, bytes, int]]:
        yield "./", b"", 0
        yield self._member("version.txt", PROTOCOL.encode(), 0)
        manifest = self._root_file(layout.MANIFEST) or rewrite.formats.dump_json(MANIFEST)
        yield self._member("manifest.json", rewrite.outgoing("manifest.json", manifest, self._selection), 0)
        versions = self._root_file(layout.CACHE_VERSION) or b"{}"
        yield self._member("cache_version.txt", rewrite.versions(versions, self._selection), 0)
        for top in _FOLDERS:
            for file in bulk.read_tree(self._files.root, top, self._selection.takes):
                yield self._member(file.path, rewrite.outgoing(file.path, file.data, self._selection), file.mtime)
        if self._selection.actor is not None:
            yield from self._tasks()
        tagged = rewrite.tags(self._entries, set(self._sums))
        if tagged:
            yield self._member("index.json", rewrite.compact(tagged), 0)
        sums = {"format": "amos-checksums", "version": 1, "algorithm": "sha256", "files": self._sums}
        yield f"./{policy.CHECKSUMS}", rewrite.compact(sums), 0

    def _tasks(self) -> Iterator[tuple[str, bytes, int]]:
        for file in bulk.read_tree(self._files.root, "tasks", policy.Selection().takes):
            if rewrite.task_travels(file.data, self._selection):
                yield self._member(file.path, file.data, file.mtime)

    def _member(self, path: str, data: bytes, mtime: int) -> tuple[str, bytes, int]:
        self._sums[path] = hashlib.sha256(data).hexdigest()
        self._size += len(data)
        return f"./{path}", data, mtime

    def _root_file(self, path: layout.PurePosixPath) -> bytes | None:
        return self._files.read(path)
