"""The opt-in engine: a CPython child for one run, behind a seccomp allow-list; Linux on x86_64 and aarch64 only."""

from .engine import ProcessEngine

__all__ = ["ProcessEngine"]
