"""The commands of ``ambot memory …`` and ``amrita-memory …``: arguments in, one envelope out, exit codes that mean."""

from .group import COMMANDS, memory

__all__ = ["COMMANDS", "memory"]
