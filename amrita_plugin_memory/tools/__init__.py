"""What the chat model may call: typed functions over the services, answered as compact JSON. Knows no bot framework."""

from .surface import SURFACE, Services

__all__ = ["SURFACE", "Services"]
