"""The composition root: builds the services from settings and ports. Wires, never decides."""

from .open import MemoryApp, open_app

__all__ = ["MemoryApp", "open_app"]
