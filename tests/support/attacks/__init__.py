"""Hostile tool code and the arena it is let loose in.

An attack is code plus the effects that must not be seen, whatever the code returns or raises. ``ATTACKS`` are all of
them, ``QUICK`` the bounded selection of every run, ``FEATURES`` what honest code should still be able to do.
"""

from .features import FEATURES
from .model import Attack
from .outward import OUTWARD
from .results import RESULTS
from .selves import SELVES
from .starving import STARVING
from .system import SYSTEM

ATTACKS: tuple[Attack, ...] = (*SELVES, *SYSTEM, *STARVING, *RESULTS, *OUTWARD)
QUICK: tuple[Attack, ...] = tuple(attack for attack in ATTACKS if attack.quick)

__all__ = ["ATTACKS", "FEATURES", "QUICK", "Attack"]
