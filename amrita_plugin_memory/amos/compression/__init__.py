"""Compression of sessions: the oldest turns become a bounded summary and go to the archive."""

from .rules import CompressionRules
from .service import Compression

__all__ = ["Compression", "CompressionRules"]
