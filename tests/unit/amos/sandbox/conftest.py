from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from amrita_plugin_memory.amos.sandbox import Sandbox, SandboxOptions


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """One sandbox for all tests that do not ask for options of their own: starting its worker takes a while."""
    box = Sandbox(SandboxOptions(), {})
    yield box
    asyncio.run(box.aclose())
