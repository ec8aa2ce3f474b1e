"""What is left to do for a package when its files have moved: tags, versions, a line in the log. Blocks.

It is written down before the first file moves, so that whoever finds a killed import can do it all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Protocol

from amrita_plugin_memory.amos.ground import formats, layout

from . import prefix, rewrite
from .export import MANIFEST, PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from amrita_plugin_memory.amos.ground import FileRoot

    from .arrival import Arrived
    from .merge import Plan
    from .prefix import Reading

IMPORT_LOG: Final = layout.LOGS / "imports.jsonl"


class IndexPort(Protocol):
    """What a package needs of ``index.json``."""

    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """Every entry by relative path."""
        ...

    def entry(self, parts: Sequence[str], text: str) -> dict[str, Any] | None:
        """What the index would say of a file; None when it is not indexed."""
        ...

    def put_entries(self, entries: Mapping[str, dict[str, Any]]) -> None:
        """Set many entries, their tags with them."""
        ...

    def rebuild(self) -> int:
        """Make the index anew from the files."""
        ...


@dataclass(frozen=True, slots=True)
class Rest:
    """JSON through and through. ``before``: what the scopes read; ``versions``: theirs in the package."""

    manifest: dict[str, Any] = field(default_factory=dict[str, Any])
    tags: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    before: Reading = field(default_factory=dict[str, "dict[str, str]"])
    versions: dict[str, int] = field(default_factory=dict[str, int])
    line: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(
        cls, files: FileRoot, arrived: Arrived, plan: Plan, *, mapping: Mapping[str, str], line: dict[str, Any]
    ) -> Rest:
        """What a plan leaves to do; asked for while every file of the root is still as it was."""
        changed = [*plan.added, *plan.replaced]
        sent = prefix.counts(arrived.root_files.get("cache_version.txt", b"{}"))
        theirs = {rewrite.mapped_scope(key, mapping): version for key, version in sent.items()}
        versions = {key: value for key, value in theirs.items() if key.partition("/")[0] in arrived.actors}
        tags = rewrite.incoming_tags(arrived.root_files.get("index.json", b"{}"), mapping)
        here = {*changed, *plan.same} if tags else set[str]()
        return cls(
            manifest=_modest(arrived.manifest),
            tags={path: listed for path, listed in tags.items() if path in here},
            before=prefix.reading(files, changed, lambda: {*versions, *prefix.scopes_of(changed)}),
            versions=versions,
            line=line,
        )

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Rest:
        """The same from a journal; what it does not say is not done."""
        return cls(**{known.name: data[known.name] for known in fields(cls) if known.name in data})

    def dump(self) -> dict[str, Any]:
        """The same for a journal."""
        return {known.name: getattr(self, known.name) for known in fields(self)}

    def settle(
        self,
        files: FileRoot,
        index: IndexPort | None,
        kept: Collection[str],
        entries: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        """Do it; for a killed import, whose ``entries`` are lost, the index is made anew.

        ``kept`` are files that were to be added and found their place taken. Doing it twice raises a version twice
        and changes nothing else that matters: a version that stood still would be the worse of the two.
        """
        _heads(files, self.manifest)
        prefix.bump(files, self.before, self.versions)
        if index is not None:
            if entries is None:
                index.rebuild()
            put = {path: entry for path, entry in (entries or {}).items() if path not in kept}
            for path, tags in self.tags.items():
                if path not in kept and files.exists(PurePosixPath(path)):
                    put[path] = {**put.get(path, {}), "tags": tags}
            index.put_entries(put)
        if self.line:
            with files.lock(IMPORT_LOG):
                line = {**self.line, "added": self.line["added"] - len(kept)}
                files.append(IMPORT_LOG, formats.dump_line(line))


def _heads(files: FileRoot, manifest: Mapping[str, Any]) -> None:
    if not files.exists(layout.VERSION):
        files.write_text(layout.VERSION, PROTOCOL)
    if manifest and not files.exists(layout.MANIFEST):
        files.write_json(layout.MANIFEST, manifest)


def _modest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A stranger's manifest may name a root, but neither its master nor the variables its tools may read."""
    kept = {key: manifest.get(key) for key in ("name", "description", "model")}
    kept["name"] = kept["name"] or "imported"
    return {**MANIFEST, **kept}
