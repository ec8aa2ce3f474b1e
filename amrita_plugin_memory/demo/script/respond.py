"""The scripted endpoint's answer to any request: the background has a script of its own, all else goes by the table."""

from __future__ import annotations

from . import rules
from .cycle import is_cycle, tidy
from .reading import Reading
from .rules import Reply


def respond(reading: Reading) -> Reply:
    """The reply to one request."""
    return tidy(reading) if is_cycle(reading) else rules.respond(reading)
