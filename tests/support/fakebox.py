"""A sandbox that runs nothing: it answers from a list and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amrita_plugin_memory.amos.sandbox import Ran, SandboxOptions


@dataclass
class FakeSandbox:
    """``checks`` and ``answers`` are taken one by one: an exception is raised, anything else given back."""

    answers: list[Any] = field(default_factory=list)
    checks: list[Exception | None] = field(default_factory=list)
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    options: SandboxOptions = field(default_factory=SandboxOptions)

    async def run(self, source: str, params: Mapping[str, Any] | None = None, **more: Any) -> Ran:
        self.ran.append((source, {"params": params, **more}))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return Ran(answer, "")

    async def check(self, source: str, *, language: str = "python") -> None:
        self.checked.append(source)
        verdict = self.checks.pop(0) if self.checks else None
        if verdict is not None:
            raise verdict

    async def aclose(self) -> None:
        """Nothing to stop."""
