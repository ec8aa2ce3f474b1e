"""How big a package may be. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of an import, in bytes or counts; every one is checked while reading and never believed from a header."""

    compressed: int = 64 * MIB
    total: int = 512 * MIB
    file: int = 32 * MIB
    members: int = 20_000
    ratio: int = 200
    ratio_after: int = MIB
    header: int = 64 * 1024
    depth: int = 16
    name: int = 255
