"""The port of this room: where the texts of entries live. The AMOS root is the real one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class EntryFiles(Protocol):
    """Named texts, shared by everybody."""

    async def names(self) -> list[str]:
        """The ids of all entries, sorted."""
        ...

    async def read(self, kid: str) -> str | None:
        """The text of one; None when there is none."""
        ...

    async def write(self, kid: str, text: str) -> None:
        """Write one whole, atomically."""
        ...

    async def delete(self, kid: str) -> bool:
        """Remove one; False when there was none."""
        ...


@dataclass(slots=True)
class MemoryEntryFiles:
    """The in-memory twin."""

    texts: dict[str, str] = field(default_factory=dict[str, str])

    async def names(self) -> list[str]:
        """See EntryFiles."""
        return sorted(self.texts)

    async def read(self, kid: str) -> str | None:
        """See EntryFiles."""
        return self.texts.get(kid)

    async def write(self, kid: str, text: str) -> None:
        """See EntryFiles."""
        self.texts[kid] = text

    async def delete(self, kid: str) -> bool:
        """See EntryFiles."""
        return self.texts.pop(kid, None) is not None
