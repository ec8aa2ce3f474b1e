"""The only room that knows Chroma: durable rows, and hot partitions searched in memory."""

from typing import TYPE_CHECKING

from amrita_plugin_memory.kernel.lazy import lazily

if TYPE_CHECKING:
    from .memory import MemoryStore
    from .ports import PAGE, PARTITION_KEY, Collection, Matrix, Partition, Row, Scalar, VectorStore
    from .store import open_store
else:
    __getattr__ = lazily(
        __name__,
        {
            "memory": ("MemoryStore",),
            "ports": ("PAGE", "PARTITION_KEY", "Collection", "Matrix", "Partition", "Row", "Scalar", "VectorStore"),
            "store": ("open_store",),
        },
    )

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
