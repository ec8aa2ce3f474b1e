"""Names of a room that are imported when first asked for, so that a glance at it does not bring all of it along."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """A module's ``__getattr__`` (PEP 562): ``homes`` maps a submodule to the names that it gives the package.

    The same names stand in an ``if TYPE_CHECKING:`` block beside it, which is what a type checker reads.
    """
    where = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{where[name]}"), name)

    return find
