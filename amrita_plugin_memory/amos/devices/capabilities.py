"""What a root's manifest requires against what is there. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class CapabilityCheck:
    """The outcome: ``compatible`` is True when nothing is missing; a root is opened either way, in a degraded form.

    ``missing`` are names of capabilities, ``warnings`` one Chinese sentence each.
    """

    compatible: bool
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def degraded(self) -> bool:
        """True when something the root asks for is not there."""
        return not self.compatible


def negotiate(required: Mapping[str, Any], offered: Mapping[str, Any]) -> CapabilityCheck:
    """Compare: a number means "at least", a list "all of", true "there", a nested object the same below; false nothing.

    Args:
        required: ``required_capabilities`` of the manifest.
        offered: the same shape, what this machine has.

    """
    missing = tuple(_missing(required, offered, ""))
    return CapabilityCheck(not missing, missing, tuple(f"缺少能力 {name}，相关功能将降级运行" for name in missing))


def _missing(required: Mapping[str, Any], offered: Mapping[str, Any], prefix: str) -> list[str]:
    found: list[str] = []
    for key, need in required.items():
        name, have = f"{prefix}{key}"[:80], offered.get(key)
        if isinstance(need, Mapping):
            inner = cast("Mapping[str, Any]", have if isinstance(have, Mapping) else {})
            found += _missing(cast("Mapping[str, Any]", need), inner, f"{name}.")
        elif not _meets(need, have):
            found.append(name)
    return found


def _meets(need: object, have: object) -> bool:
    if need is None or need is False:
        return True
    if isinstance(need, bool):
        return bool(have)
    if isinstance(need, int | float):
        return isinstance(have, int | float) and have >= need
    if isinstance(need, list):
        wanted = cast("list[object]", need)
        return isinstance(have, list | tuple | set | frozenset) and all(
            one in cast("list[object]", have) for one in wanted
        )
    return have == need or (isinstance(have, Mapping) and need in have)
