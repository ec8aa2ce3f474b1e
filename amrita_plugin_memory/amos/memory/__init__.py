"""Memory as nouns: soul, profile and summary (`stable`), sessions, workflows, knowledge, index and tags.

Everything here blocks, takes its scope or owner folder in each call and knows neither events nor access lists: the
facade asks those. No model is asked here either; summaries are made one storey up.
"""

from .index import Index
from .knowledge import Knowledge
from .sessions import Sessions
from .stable import StableText
from .tags import Tags
from .workflows import Workflows

__all__ = ["Index", "Knowledge", "Sessions", "StableText", "Tags", "Workflows"]
