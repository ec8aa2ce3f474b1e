"""The one error tree of the project.

``str(error)`` is always one plain Chinese sentence that may be shown to a person: what was wrong and what to do.
Causes that only an engineer can use travel as ``__cause__`` and end in the log.

    AmritaMemoryError
    ├── InvalidInput          the caller gave something unusable
    │   └── InvalidName       a name that cannot become a path component or a key
    ├── NotFound              nothing has this id
    ├── Ambiguous             a short id that several things share
    ├── Duplicate             the same thing is stored already
    ├── LimitReached          a configured bound
    ├── Forbidden             the caller may not do this
    ├── Unavailable           an outside service does not answer now; asking again later may help
    │   ├── EmbeddingUnavailable
    │   └── StoreUnavailable
    ├── SpaceMismatch         vectors of two embedding spaces would have been compared
    ├── Locked                another process is at work on the same data
    ├── Corrupt               stored data that cannot be read as what it should be
    └── ConfigInvalid         a setting that cannot be used
"""

from __future__ import annotations


class AmritaMemoryError(Exception):
    """Root of every error this project raises on purpose."""


class InvalidInput(AmritaMemoryError):
    """The caller gave something unusable; nothing was changed."""


class InvalidName(InvalidInput):
    """A name from outside that cannot become a path component or a key."""

    def __init__(self, *, what: str, name: object, why: str) -> None:
        super().__init__(f"{what}名称 {shorten(name)} 不可用：{why}")
        self.what = what
        self.name = name
        self.why = why


class NotFound(AmritaMemoryError):
    """Nothing has this id in the caller's scope (the same answer whether or not it exists elsewhere)."""


class Ambiguous(AmritaMemoryError):
    """A short id that more than one thing shares."""


class Duplicate(AmritaMemoryError):
    """The same thing is stored already; ``id`` names the first."""

    def __init__(self, message: str, *, id: str) -> None:
        super().__init__(message)
        self.id = id


class LimitReached(AmritaMemoryError):
    """A configured bound would have been passed; nothing was changed."""


class Forbidden(AmritaMemoryError):
    """The caller has not the role this needs."""


class Unavailable(AmritaMemoryError):
    """An outside service does not answer now."""


class EmbeddingUnavailable(Unavailable):
    """No vector could be had: service down, slow, refusing, or answering nonsense."""


class StoreUnavailable(Unavailable):
    """The vector store or the database does not answer."""


class SpaceMismatch(AmritaMemoryError):
    """The stored vectors were made by another embedding model than the one at hand."""


class Locked(AmritaMemoryError):
    """Another process holds the data."""


class Corrupt(AmritaMemoryError):
    """Stored data that cannot be read as what it should be."""


class ConfigInvalid(AmritaMemoryError):
    """A setting that cannot be used."""


def shorten(value: object, limit: int = 40) -> str:
    """A printable, bounded form of a value from outside, for use inside a sentence."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
