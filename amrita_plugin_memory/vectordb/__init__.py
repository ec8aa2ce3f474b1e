"""The only room that knows Chroma: durable rows, and hot partitions searched in memory."""

from .memory import MemoryStore
from .ports import PAGE, PARTITION_KEY, Collection, Matrix, Partition, Row, Scalar, VectorStore
from .store import open_store

__all__ = [
    "PAGE",
    "PARTITION_KEY",
    "Collection",
    "Matrix",
    "MemoryStore",
    "Partition",
    "Row",
    "Scalar",
    "VectorStore",
    "open_store",
]
