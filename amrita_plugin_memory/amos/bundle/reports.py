"""What an export and an import take and tell. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .limits import Limits


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What was written: where, how many files, bytes before and after packing, sha256 of the package.

    ``trusted_only``: it is beyond the usual `Limits` and comes in with `ImportOptions.trusted` only.
    """

    path: str
    files: int
    size: int
    packed: int
    sha256: str
    trusted_only: bool = False


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a package is taken in. Trust is given one by one; nothing is trusted by default.

    ``overwrite``: replace what differs (otherwise what is there stays). ``actor_mapping``: new names for users of the
    package. ``dry_run``: report only. ``trust_acl``: take its access lists. ``trust_tools``: its tools keep their
    status and can be run (for one's own backup). ``trusted``: it may be of any size (for one's own backup as well); its
    names and links are judged all the same. So whatever an export writes comes in: as it is, or when the export said
    `ExportResult.trusted_only` with ``trusted``.
    """

    overwrite: bool = False
    actor_mapping: Mapping[str, str] = field(default_factory=dict[str, str])
    dry_run: bool = False
    trust_acl: bool = False
    trust_tools: bool = False
    check_env_vars: bool = True
    limits: Limits = field(default_factory=Limits)
    trusted: bool = False

    @property
    def bounds(self) -> Limits:
        """The limits that hold."""
        return self.limits.lifted() if self.trusted else self.limits


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or with ``dry_run`` would do; paths relative to the root, after mapping."""

    manifest: Mapping[str, Any]
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    drafts: tuple[str, ...] = ()
    missing_env_vars: tuple[str, ...] = ()
    mapping_applied: bool = False
    verified: bool = False
    dry_run: bool = False
    actors: tuple[str, ...] = ()

    @property
    def changes(self) -> int:
        """How many files were added or replaced."""
        return len(self.added) + len(self.replaced)
