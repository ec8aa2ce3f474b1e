"""Names on a disk that is blind to case (NTFS, APFS): two names that differ in case only must not become one file.

On such a disk "Alice" would open the folder of "alice". What stands there under another spelling is therefore refused.
On a disk that tells them apart there is nothing to do and nothing is done.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from amrita_plugin_memory.kernel.errors import InvalidName

from .names import fold


def is_blind(folder: Path) -> bool:
    """True when the disk below ``folder`` takes its own path in other case for the same folder."""
    other = folder.with_name(folder.name.swapcase())
    if other.name == folder.name:
        return False
    try:
        return other.samefile(folder)
    except OSError:
        return False


@dataclass(slots=True)
class Spellings:
    """How the names in folders are spelled; a folder is listed again when it has changed."""

    _known: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict[str, tuple[int, dict[str, str]]])

    def check(self, folder: str, name: str) -> None:
        """Raise InvalidName when ``folder`` holds ``name`` in another spelling."""
        there = self._names(folder).get(fold(name), name)
        if there != name:
            raise InvalidName(what="文件", name=name, why="已有只差大小写的同名文件，请换一个名字")

    def _names(self, folder: str) -> dict[str, str]:
        try:
            changed = os.lstat(folder).st_mtime_ns
            known = self._known.get(folder)
            if known is None or known[0] != changed:
                known = (changed, {fold(path.name): path.name for path in Path(folder).iterdir()})
                self._known[folder] = known
        except OSError:
            return {}
        return known[1]
