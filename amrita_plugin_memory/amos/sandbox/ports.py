"""What the sandbox needs of an engine, and what an engine may ask of the host while code runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from .http import HttpRequest, HttpResponse
from .rules import Finished, Job

Fetch: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponse]]
"""The broker's way out; it raises HttpRefused or HttpFailed."""


class Engine(Protocol):
    """Runs gated code where it can do no harm."""

    async def ready(self) -> None:
        """Return when the self-test has passed, now or before.

        Raises:
            SandboxUnavailable: the engine is missing, cannot start, or did not contain what it must.

        """
        ...

    async def run(self, job: Job, fetch: Fetch) -> Finished:
        """Run one job in a fresh interpreter.

        Raises:
            SandboxUnavailable: every worker stayed busy.
            SandboxTimeout: stopped at the deadline; nothing of it is left.
            SandboxLimit: memory, output or another bound.
            ToolCodeError: the code raised, or cannot be parsed.
            ToolResultError: the result is not JSON.

        """
        ...

    async def check(self, source: str) -> None:
        """Return when the engine can parse the code; none of it is run.

        Raises:
            ToolCodeError: with the line and the reason.

        """
        ...

    async def aclose(self) -> None:
        """Stop every worker."""
        ...
