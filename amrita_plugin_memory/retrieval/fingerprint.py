"""What a collection was built with, as its metadata records it, and whether a space is the same one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from amrita_plugin_memory.embedding.ports import VectorSpace
from amrita_plugin_memory.vectordb.ports import Scalar

Match: TypeAlias = Literal["unmarked", "same", "different"]

# The first four names are the published plugin's; the others are ours.
FINGERPRINT: Final = "embed_fingerprint"
PROTOCOL: Final = "embed_protocol"
MODEL: Final = "embed_model"
BASE_URL: Final = "embed_base_url"
RESOLVED: Final = "embed_resolved_model"
PACKAGE: Final = "embed_package"
PREFIX_RULE: Final = "embed_prefix_rule"
DIMENSION: Final = "embed_dimension"
MEANINGFUL: Final = "embed_meaningful"


def stamp(space: VectorSpace) -> dict[str, Scalar]:
    """The metadata that records ``space``."""
    marks: dict[str, Scalar] = {
        FINGERPRINT: space.legacy_fingerprint,
        PROTOCOL: space.protocol,
        MODEL: space.model,
        BASE_URL: space.base_url,
        RESOLVED: space.resolved_model,
        PACKAGE: space.package,
        PREFIX_RULE: space.prefix_rule,
        MEANINGFUL: space.meaningful,
    }
    if space.dimension is not None:
        marks[DIMENSION] = space.dimension
    return marks


def recorded(metadata: Mapping[str, Scalar]) -> VectorSpace | None:
    """The space a collection says it was built with; None when it says nothing."""
    if not metadata.get(FINGERPRINT):
        return None
    dimension = metadata.get(DIMENSION)
    return VectorSpace(
        protocol=str(metadata.get(PROTOCOL, "")),
        model=str(metadata.get(MODEL, "")),
        base_url=str(metadata.get(BASE_URL, "")),
        resolved_model=str(metadata.get(RESOLVED, "")),
        package=str(metadata.get(PACKAGE, "")),
        prefix_rule=str(metadata.get(PREFIX_RULE, "none")),
        dimension=int(dimension) if dimension is not None else None,
        meaningful=bool(metadata.get(MEANINGFUL, True)),
    )


def match(metadata: Mapping[str, Scalar], space: VectorSpace) -> Match:
    """Whether vectors of ``space`` may be compared with those of a collection."""
    known = recorded(metadata)
    if known is None:
        return "unmarked"
    if known.dimension is not None and space.dimension is not None and known.dimension != space.dimension:
        return "different"
    if known.resolved_model and space.resolved_model and known.resolved_model != space.resolved_model:
        return "different"
    return "same" if metadata[FINGERPRINT] == space.legacy_fingerprint else "different"
