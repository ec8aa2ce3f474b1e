"""The doctor: looks at a root, mends what may be mended without asking, and says what is left."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amrita_plugin_memory.kernel.errors import AmritaMemoryError

from .checks import Finding, everything

if TYPE_CHECKING:
    from amrita_plugin_memory.amos.ground import FileRoot

_log = logging.getLogger("amrita_memory.amos")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found; ``mended`` of it was put right, ``left`` was not."""

    found: tuple[Finding, ...]
    mended: tuple[Finding, ...] = ()

    @property
    def left(self) -> tuple[Finding, ...]:
        """What still needs somebody: notes are only for information."""
        return tuple(f for f in self.found if f not in self.mended and f.level != "note")


def examine(files: FileRoot, *, fix: bool = False) -> Diagnosis:
    """Look at everything; with ``fix`` mend what can be mended. Blocks.

    Nothing that may be somebody's memory is thrown away: lines no reader can use go to ``logs/damaged-lines.log``.
    """
    found: list[Finding] = []
    mended: list[Finding] = []
    for finding in everything(files):
        found.append(finding)
        if fix and finding.mend is not None and _mend(finding):
            mended.append(finding)
    return Diagnosis(tuple(found), tuple(mended))


def _mend(finding: Finding) -> bool:
    try:
        if finding.mend is not None:
            finding.mend()
    except (AmritaMemoryError, OSError) as error:
        _log.warning("%s %s could not be mended: %s", finding.code, finding.path, error)
        return False
    return True
