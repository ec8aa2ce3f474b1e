"""Packages in and out of a root."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Protocol

from amrita_plugin_memory.amos.ground import FileRoot, bulk, formats, holders, layout
from amrita_plugin_memory.kernel.clock import Clock, SystemClock, iso_seconds

from . import arrival, merge, policy, rewrite
from .export import MANIFEST, PROTOCOL, Export
from .reports import ExportResult, ImportOptions, ImportReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LOCK: Final = layout.PRIVATE / "import"
IMPORT_LOG: Final = layout.LOGS / "imports.jsonl"
_HOLDER: Final = PurePosixPath("holder.json")


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
class PortabilityManager:
    """Exports and imports ``.amos`` packages of one root; without ``index`` no tags travel."""

    files: FileRoot
    index: IndexPort | None = None
    clock: Clock = field(default_factory=SystemClock)

    async def export(self, target: Path | str, actor: str | None = None, agent: str | None = None) -> ExportResult:
        """Write a package of the whole root, of one user, or of one agent with what it reads of its user.

        Raises:
            BundleError: no such user or agent.
            InvalidName: a name that cannot be one.

        """
        return await asyncio.to_thread(self.export_now, Path(target), policy.Selection(actor, agent))

    async def import_bundle(self, package: Path | str, options: ImportOptions | None = None) -> ImportReport:
        """Take a package in, whole or not at all.

        Raises:
            BundleError: not a package, damaged, dangerous or too big; nothing was changed.
            ProtocolVersionError: of another version; nothing was changed.
            Locked: another import is at work.

        """
        return await asyncio.to_thread(self.import_now, Path(package), options or ImportOptions())

    async def recover(self) -> int:
        """Finish imports that were killed while moving, and sweep those killed before; how many of both."""
        return await asyncio.to_thread(self.recover_now)

    def export_now(self, target: Path, selection: policy.Selection) -> ExportResult:
        """`export`, blocking."""
        entries = self.index.entries() if self.index is not None else _stored_entries(self.files)
        return Export(self.files, selection, entries).write(target)

    def import_now(self, package: Path, options: ImportOptions) -> ImportReport:
        """`import_bundle`, blocking."""
        policy.check_mapping(options.actor_mapping)
        with self.files.lock(LOCK, keep_alive=True):
            self._recover()
            staging = self._new_staging()
            try:
                arrived = arrival.read(
                    package, staging.root / merge.TREE, options, sync=self.files.sync, entry_of=self._entry_of(options)
                )
                plan = merge.make_plan(self.files, staging.root / merge.TREE, overwrite=options.overwrite)
                report = _report(arrived, plan, options)
                if not options.dry_run:
                    merge.apply(self.files, staging, plan)
                    self._settle(arrived, report, options)
                    self._note(package, report)
                return report
            finally:
                merge.discard(staging.root)

    def recover_now(self) -> int:
        """`recover`, blocking."""
        with self.files.lock(LOCK, keep_alive=True):
            return self._recover()

    def leftovers(self) -> list[Path]:
        """Folders that killed imports left behind."""
        return [folder for folder in self._stagings() if not _is_held(folder)]

    def _recover(self) -> int:
        left = self.leftovers()
        for folder in left:
            staging = FileRoot.open(folder, sync=self.files.sync)
            if merge.finish(self.files, staging) and self.index is not None:
                self.index.rebuild()
            merge.discard(folder)
        return len(left)

    def _stagings(self) -> Iterator[Path]:
        root = self.files.root
        yield from sorted(root.parent.glob(f".{root.name}.import-*"))
        yield from sorted((root / layout.PRIVATE).glob("import-*"))

    def _new_staging(self) -> FileRoot:
        root, token = self.files.root, secrets.token_hex(6)
        folder = root.parent / f".{root.name}.import-{token}"
        try:
            folder.mkdir(mode=0o700)
            beside = folder.stat().st_dev == root.stat().st_dev
        except OSError:
            beside = False
        if not beside:
            merge.discard(folder)
            folder = self.files.make_dir(layout.PRIVATE / f"import-{token}")
        staging = FileRoot.open(folder, sync=self.files.sync)
        here = holders.Holder.current()
        staging.write_json(_HOLDER, {"pid": here.pid, "host": here.host, "start": here.start})
        return staging

    def _settle(self, arrived: arrival.Arrived, report: ImportReport, options: ImportOptions) -> None:
        if not self.files.exists(layout.VERSION):
            self.files.write_text(layout.VERSION, PROTOCOL)
        if not self.files.exists(layout.MANIFEST):
            self.files.write_json(layout.MANIFEST, _modest(arrived.manifest))
        self._bump(arrived, report, options)
        if self.index is not None:
            tags = rewrite.incoming_tags(arrived.root_files.get("index.json", b"{}"), options.actor_mapping)
            entries = {p: arrived.entries[p] for p in (*report.added, *report.replaced) if p in arrived.entries}
            here = {*report.added, *report.replaced, *report.same}
            tagged = {p: {**arrived.entries.get(p, {}), "tags": tags[p]} for p in tags.keys() & here}
            self.index.put_entries({**entries, **tagged})

    def _entry_of(self, options: ImportOptions) -> arrival.EntryOf | None:
        return None if self.index is None or options.dry_run else self.index.entry

    def _bump(self, arrived: arrival.Arrived, report: ImportReport, options: ImportOptions) -> None:
        changed = {*report.added, *report.replaced}
        if not any(path.startswith(("users/", "shared/")) for path in changed):
            return
        sent = formats.load_object(arrived.root_files.get("cache_version.txt", b"{}")) or {}
        theirs = {rewrite.mapped_scope(k, options.actor_mapping): v for k, v in sent.items() if _is_count(v)}
        with self.files.lock(layout.CACHE_VERSION):
            stored = formats.load_object(self.files.read(layout.CACHE_VERSION) or b"{}") or {}
            mine = {key: value for key, value in stored.items() if _is_count(value)}
            scopes = {key for key in theirs if key.partition("/")[0] in arrived.actors} | set(arrived.actors)
            if "shared/soul.md" in changed:
                scopes |= set(mine)
            for key in scopes:
                mine[key] = max(mine[key], theirs.get(key, 1)) + 1 if key in mine else theirs.get(key, 1)
            self.files.write_json(layout.CACHE_VERSION, mine)

    def _note(self, package: Path, report: ImportReport) -> None:
        digest = hashlib.sha256()
        for chunk in bulk.read_chunks(package):
            digest.update(chunk)
        line = {
            "ts": iso_seconds(self.clock.now()),
            "source": "import",
            "trust": "low",
            "sha256": digest.hexdigest(),
            "verified": report.verified,
            "actors": list(report.actors),
            "added": len(report.added),
            "replaced": len(report.replaced),
            "drafts": list(report.drafts),
        }
        with self.files.lock(IMPORT_LOG):
            self.files.append(IMPORT_LOG, formats.dump_line(line))


def _report(arrived: arrival.Arrived, plan: merge.Plan, options: ImportOptions) -> ImportReport:
    manifest = arrived.manifest
    wanted = manifest.get("env_vars")
    names = [str(name) for name in wanted] if isinstance(wanted, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return ImportReport(
        manifest=manifest,
        added=tuple(plan.added),
        replaced=tuple(plan.replaced),
        kept=tuple(plan.kept),
        same=tuple(plan.same),
        skipped=arrived.skipped,
        drafts=tuple(arrived.drafts),
        missing_env_vars=tuple(n for n in names if options.check_env_vars and not os.environ.get(n)),
        mapping_applied=bool(options.actor_mapping),
        verified=arrived.verified,
        dry_run=options.dry_run,
        actors=arrived.actors,
    )


def _stored_entries(files: FileRoot) -> dict[str, dict[str, Any]]:
    found = formats.load_object(files.read(layout.INDEX) or b"{}") or {}
    return {path: entry for path, entry in found.items() if isinstance(entry, dict)}


def _modest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A stranger's manifest may name a root, but neither its master nor the variables its tools may read."""
    kept = {key: manifest.get(key) for key in ("name", "description", "model")}
    kept["name"] = kept["name"] or "imported"
    return {**MANIFEST, **kept}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_held(folder: Path) -> bool:
    try:
        holder = formats.load_object((folder / _HOLDER).read_bytes()) or {}
    except OSError:
        return False
    pid, start = holder.get("pid"), holder.get("start")
    if holder.get("host") != holders.Holder.current().host or not isinstance(pid, int):
        return True
    return holders.is_alive(pid) and start in (None, holders.started_at(pid))
