"""The composition root: builds the services from settings and ports. Wires, never decides."""

from .erase import Erasure, Holdings
from .l3 import L3, L3Ports
from .open import MemoryApp, open_app

__all__ = ["L3", "Erasure", "Holdings", "L3Ports", "MemoryApp", "open_app"]
