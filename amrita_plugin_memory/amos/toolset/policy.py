"""Which tools may be called, and who is told of it. One policy belongs to one root."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from .names import dotted

OnCall: TypeAlias = Callable[[str, dict[str, Any], dict[str, Any]], Any]
"""``(dotted name, arguments, result)``, plain or async."""

log = logging.getLogger("amrita_memory.amos")


@dataclass(slots=True)
class ToolPolicy:
    """``allow`` None means everything; ``deny`` wins. Entries are names in any spelling, ``*`` included."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    listeners: list[OnCall] = field(default_factory=list[OnCall])

    def set(self, allow: Iterable[str] | None, deny: Iterable[str] | None) -> None:
        """Replace both lists; None lifts one."""
        self.allow = None if allow is None else tuple(map(dotted, allow))
        self.deny = tuple(map(dotted, deny or ()))

    def permits(self, name: str) -> bool:
        """True when a tool, by its dotted name, may be called."""
        if any(fnmatchcase(name, pattern) for pattern in self.deny):
            return False
        return self.allow is None or any(fnmatchcase(name, pattern) for pattern in self.allow)

    async def tell(self, name: str, arguments: dict[str, Any], result: dict[str, Any]) -> None:
        """Tell every listener; one that fails does not fail the call."""
        for listener in tuple(self.listeners):
            try:
                answer = listener(name, arguments, result)
                if inspect.isawaitable(answer):
                    await answer
            except Exception:
                log.warning("a tool audit callback failed", exc_info=True)
