"""What the chat model may call: typed functions over the services, answered as compact JSON. Knows no bot framework."""

from .knowledge import KNOWLEDGE
from .surface import SURFACE, Services

__all__ = ["KNOWLEDGE", "SURFACE", "Services"]
