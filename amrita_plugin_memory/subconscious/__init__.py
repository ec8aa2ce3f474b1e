"""L3: the background cycle that tidies in the silence of its target."""

from .service import Collaborators, Subconscious

__all__ = ["Collaborators", "Subconscious"]
