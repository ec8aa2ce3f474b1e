"""How big a package may be. Pure."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of an import, in bytes or counts; every one is checked while reading and never believed from a header.

    Text of one sign compresses a thousandfold, so that ``ratio`` says nothing before ``ratio_after`` bytes.
    """

    compressed: int = 64 * MIB
    total: int = 512 * MIB
    file: int = 128 * MIB
    members: int = 200_000
    ratio: int = 200
    ratio_after: int = 64 * MIB
    header: int = 64 * 1024
    depth: int = 16
    name: int = 255

    def lifted(self) -> Limits:
        """The same without bounds on sizes and counts; those on names stay."""
        most = sys.maxsize
        return replace(self, compressed=most, total=most, file=most, members=most, ratio_after=most)


DEFAULT: Final = Limits()
