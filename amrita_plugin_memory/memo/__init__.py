"""L1: the memo that is in every prompt, at most a thousand characters, replaced as a whole."""

from .memory import MemoryMemoStore
from .ports import MemoRow, MemoStore, Stamp
from .service import Memo

__all__ = ["Memo", "MemoRow", "MemoStore", "MemoryMemoStore", "Stamp"]
