"""Packages in and out of a root."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from amrita_plugin_memory.amos.ground import FileRoot, bulk, formats, holders, layout
from amrita_plugin_memory.kernel.clock import Clock, SystemClock, iso_seconds

from . import arrival, merge, policy
from .export import Export
from .reports import ExportResult, ImportOptions, ImportReport
from .rest import Rest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .rest import IndexPort

LOCK: Final = layout.PRIVATE / "import"
_HOLDER: Final = PurePosixPath("holder.json")


@dataclass(frozen=True, slots=True)
class PortabilityManager:
    """Exports and imports ``.amos`` packages of one root; without ``index`` no tags travel."""

    files: FileRoot
    index: IndexPort | None = None
    clock: Clock = field(default_factory=SystemClock)

    async def export(
        self, target: Path | str, actor: str | None = None, agent: str | None = None, *, empty_ok: bool = False
    ) -> ExportResult:
        """Write a package of the whole root, of one user, or of one agent with what it reads of its user.

        Raises:
            BundleError: no such user or agent; with ``empty_ok`` there is only what is shared in the package.
            InvalidName: a name that cannot be one.

        """
        selection = policy.Selection(actor, agent)
        return await asyncio.to_thread(lambda: self.export_now(Path(target), selection, empty_ok=empty_ok))

    async def import_bundle(self, package: Path | str, options: ImportOptions | None = None) -> ImportReport:
        """Take a package in, whole or not at all.

        Its files move first, then tags, versions and the log follow. When those are held up, the error is told and
        the next import, `recover` or opening of the root does what is left.

        Raises:
            BundleError: not a package, damaged, dangerous or too big; nothing was changed.
            ProtocolVersionError: of another version; nothing was changed.
            Locked: another import is at work, or the index is held for long.

        """
        return await asyncio.to_thread(self.import_now, Path(package), options or ImportOptions())

    async def recover(self) -> int:
        """Finish imports that were killed while moving, and sweep those killed before; how many of both."""
        return await asyncio.to_thread(self.recover_now)

    def export_now(self, target: Path, selection: policy.Selection, *, empty_ok: bool = False) -> ExportResult:
        """`export`, blocking."""
        entries = self.index.entries() if self.index is not None else _stored_entries(self.files)
        return Export(self.files, selection, entries).write(target, empty_ok=empty_ok)

    def import_now(self, package: Path, options: ImportOptions) -> ImportReport:
        """`import_bundle`, blocking."""
        policy.check_mapping(options.actor_mapping)
        with self.files.lock(LOCK, keep_alive=True):
            self._recover()
            staging = self._new_staging()
            moved = False
            try:
                arrived = arrival.read(
                    package, staging.root / merge.TREE, options, sync=self.files.sync, entry_of=self._entry_of(options)
                )
                plan = merge.make_plan(self.files, staging.root / merge.TREE, overwrite=options.overwrite)
                report = _report(arrived, plan, options)
                if options.dry_run:
                    return report
                line = self._line(package, report)
                rest = Rest.of(self.files, arrived, plan, mapping=options.actor_mapping, line=line)
                kept = merge.apply(self.files, staging, plan, rest.dump())
                moved = True
                wanted = {*plan.added, *plan.replaced, *rest.tags}
                entries = {path: entry for path, entry in arrived.entries.items() if path in wanted}
                rest.settle(self.files, self.index, kept, entries)
                moved = False
                return _report(arrived, plan, options)
            finally:
                if moved:  # nobody holds it from here on, so that the next import or opening does the rest
                    staging.delete(_HOLDER)
                else:
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
            done = merge.finish(self.files, staging)
            if done is not None:
                Rest.load(done.rest).settle(self.files, self.index, done.kept)
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

    def _entry_of(self, options: ImportOptions) -> arrival.EntryOf | None:
        return None if self.index is None or options.dry_run else self.index.entry

    def _line(self, package: Path, report: ImportReport) -> dict[str, Any]:
        """What is noted about an import."""
        digest = hashlib.sha256()
        for chunk in bulk.read_chunks(package):
            digest.update(chunk)
        return {
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


def _is_held(folder: Path) -> bool:
    try:
        holder = formats.load_object((folder / _HOLDER).read_bytes()) or {}
    except OSError:
        return False
    pid, start = holder.get("pid"), holder.get("start")
    if holder.get("host") != holders.Holder.current().host or not isinstance(pid, int):
        return True
    return holders.is_alive(pid) and start in (None, holders.started_at(pid))
