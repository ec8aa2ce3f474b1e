"""The shared knowledge base: entries with a title, a summary and a body."""

from .entry import Entry, spliced, window
from .files import AmosEntryFiles
from .ports import EntryFiles, MemoryEntryFiles
from .service import Knowledge, Repaired

__all__ = ["AmosEntryFiles", "Entry", "EntryFiles", "Knowledge", "MemoryEntryFiles", "Repaired", "spliced", "window"]
