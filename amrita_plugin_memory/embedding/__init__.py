"""Text to vectors: services, the embedded models, and the rule that picks one. Knows no store and no bot.

The door is ``build_embedder``; ``FakeEmbedder`` is the twin for tests. Importing this room imports no client package,
no model and opens nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from amrita_plugin_memory.kernel.lazy import lazily

if TYPE_CHECKING:
    from .build import ChosenEmbedder, build_embedder
    from .choose import Choice, Probes, decide, differs
    from .fake import FakeEmbedder
    from .hashed import HASHED_NOTE, HashedEmbedder
    from .ports import Embedder, Matrix, Purpose, VectorSpace
    from .service.endpoint import Endpoint, normalise
else:
    __getattr__ = lazily(
        __name__,
        {
            "build": ("ChosenEmbedder", "build_embedder"),
            "choose": ("Choice", "Probes", "decide", "differs"),
            "fake": ("FakeEmbedder",),
            "hashed": ("HASHED_NOTE", "HashedEmbedder"),
            "ports": ("Embedder", "Matrix", "Purpose", "VectorSpace"),
            "service.endpoint": ("Endpoint", "normalise"),
        },
    )

__all__ = [
    "HASHED_NOTE",
    "Choice",
    "ChosenEmbedder",
    "Embedder",
    "Endpoint",
    "FakeEmbedder",
    "HashedEmbedder",
    "Matrix",
    "Probes",
    "Purpose",
    "VectorSpace",
    "build_embedder",
    "decide",
    "differs",
    "normalise",
    "preload",
]


def preload() -> None:
    """Import the HTTP client now, on the caller's thread; for a program that looks it up in ``sys.modules`` itself.

    Rooms import it in worker threads on first use, and half-imported it would break a client of the host meanwhile.
    """
    import_module("httpx")
