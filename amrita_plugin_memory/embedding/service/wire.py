"""What one protocol must be able to say to its server; retries, batches and checks are not its business."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .models import ServedModel
from .quirks import Quirks


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: these texts, this model; ``dimensions`` 0 asks for nothing."""

    texts: tuple[str, ...]
    model: str
    dimensions: int = 0


class Wire(Protocol):
    """One server spoken to in one protocol."""

    async def open(self) -> None:
        """Import the client package and make the client, in a thread; it takes a second or two, once."""
        ...

    async def ask(self, ask: Ask, quirks: Quirks) -> object:
        """The rows as the server sent them, unchecked.

        Raises:
            ServiceFault: anything but a readable answer.

        """
        ...

    async def models(self) -> list[ServedModel]:
        """What the server has, and where it says so, what that can do.

        Raises:
            ServiceFault: anything but a readable list.

        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
