"""Names of what a rebuild leaves in the store, and the marks that tell how far it came. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amrita_plugin_memory.retrieval.fingerprint import MARKS, REBUILDING
from amrita_plugin_memory.vectordb.ports import VECTORS_MISSING, Scalar

STATE: Final = "embed_rebuild"  # on the new collection, until it stands in the old one's place
JOB: Final = "embed_rebuild_job"
GENERATION: Final = "embed_generation"  # one more with every rebuild, so that old and new are told apart
PENDING: Final = VECTORS_MISSING
KEY_VERSION: Final = "key_schema_version"
BUILDING: Final = "building"
COMPLETE: Final = "complete"
MERGING: Final = "merging"  # rows written after a crash are being added to what the crash had left
KEYS_NOW: Final = 2


def rebuild_of(name: str) -> str:
    """Where the new collection grows; the published plugin's name for it."""
    return f"{name}__rebuild"


def aside_of(name: str) -> str:
    """Where the old one waits to be removed."""
    return f"{name}__old"


def kept(metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """What a collection's metadata says besides its space and any rebuild: goes with the rows."""
    return {k: v for k, v in metadata.items() if k not in {*MARKS, REBUILDING, STATE, JOB, GENERATION, PENDING}}


def generation(metadata: Mapping[str, Scalar]) -> int:
    """How many rebuilds a collection has behind it."""
    value = metadata.get(GENERATION, 0)
    return int(value) if isinstance(value, int | float) else 0
