"""Sessions: the turns of a conversation, and the safe way of the oldest into the archive."""

from .service import Added, Sessions
from .turns import Turn

__all__ = ["Added", "Sessions", "Turn"]
