"""The owner of the machine may have an embedding service configured; tests of this room must not see it."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_configured_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("EMBED")]:
        monkeypatch.delenv(name)
