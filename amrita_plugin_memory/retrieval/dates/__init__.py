"""Date words in Chinese and English: a text and a moment give the days that are meant. Pure; knows no rows."""

from .read import spans
from .span import Span

__all__ = ["Span", "spans"]
