"""Our rooms log through the standard library; the host logs through loguru. This hands the former to the latter."""

from __future__ import annotations

import logging

from nonebot.log import LoguruHandler


def hand_to_host() -> None:
    """Send everything below ``amrita_memory`` to the host's log, once."""
    ours = logging.getLogger("amrita_memory")
    if not any(isinstance(handler, LoguruHandler) for handler in ours.handlers):
        ours.addHandler(LoguruHandler())
    ours.setLevel(logging.DEBUG)
    ours.propagate = False
