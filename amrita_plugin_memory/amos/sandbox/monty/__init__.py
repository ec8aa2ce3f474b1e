"""The default engine: pydantic-monty, an interpreter of its own in pooled worker processes that the kernel confines."""

from .engine import MontyEngine
from .imports import unknown_modules
from .run import UnsupportedCode

__all__ = ["MontyEngine", "UnsupportedCode", "unknown_modules"]
