"""Text to vectors: services, the embedded models, and the rule that picks one. Knows no store and no bot.

The door is ``build_embedder``; ``FakeEmbedder`` is the twin for tests. Importing this room imports no client package,
no model and opens nothing.
"""

from .build import ChosenEmbedder, build_embedder
from .choose import Choice, Probes, decide, differs
from .fake import FakeEmbedder
from .hashed import HASHED_NOTE, HashedEmbedder
from .ports import Embedder, Matrix, Purpose, VectorSpace
from .service.endpoint import Endpoint, normalise

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
]
