"""What a collection was built with, as its metadata records it, and whether a space is the same one. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from amrita_plugin_memory.embedding.ports import Matrix, VectorSpace
from amrita_plugin_memory.embedding.service.endpoint import normalise
from amrita_plugin_memory.kernel.errors import ConfigInvalid
from amrita_plugin_memory.vectordb.ports import Scalar

Match: TypeAlias = Literal["unmarked", "same", "different"]

# The first four names are the published plugin's; the others are ours.
FINGERPRINT: Final = "embed_fingerprint"
PROTOCOL: Final = "embed_protocol"
MODEL: Final = "embed_model"
BASE_URL: Final = "embed_base_url"
IDENTITY: Final = "embed_identity"
RESOLVED: Final = "embed_resolved_model"
PACKAGE: Final = "embed_package"
PREFIX_RULE: Final = "embed_prefix_rule"
DIMENSION: Final = "embed_dimension"
MEANINGFUL: Final = "embed_meaningful"
PROBE: Final = "embed_probe"
DOUBTED: Final = "embed_doubted"  # vectors of the published plugin that turned out not to be its model's
REBUILDING: Final = "embed_rebuilding"  # identity of the space a rebuild is under way for
MARKS: Final = (
    FINGERPRINT, PROTOCOL, MODEL, BASE_URL, IDENTITY, RESOLVED, PACKAGE, PREFIX_RULE, DIMENSION, MEANINGFUL, PROBE,
    DOUBTED,
)  # fmt: skip

# Changing the sentence makes every stored probe meaningless: a new sentence needs a new metadata name.
PROBE_TEXT: Final = "记忆探针：今天下午三点，在图书馆门口还给小林一本《海边的卡夫卡》。The probe stays the same."
SAME_MODEL: Final = 0.99  # cosine of two probes of one model, quantised or rounded differently
IDENTICAL: Final = 0.9999  # cosine from which a model under another name or address is taken for the same


def stamp(space: VectorSpace, probe: Matrix | None = None) -> dict[str, Scalar]:
    """The metadata that records ``space``; ``probe`` is its vector of PROBE_TEXT, shape (dimension,)."""
    marks: dict[str, Scalar] = {
        FINGERPRINT: space.legacy_fingerprint,
        PROTOCOL: space.protocol,
        MODEL: space.model,
        BASE_URL: space.base_url,
        IDENTITY: identity(space),
        RESOLVED: space.resolved_model,
        PACKAGE: space.package,
        PREFIX_RULE: space.prefix_rule,
        MEANINGFUL: space.meaningful,
    }
    if space.dimension is not None:
        marks[DIMENSION] = space.dimension
    if probe is not None:
        import numpy as np

        marks[PROBE] = base64.b64encode(np.ascontiguousarray(probe, dtype="<f4").tobytes()).decode("ascii")
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


def recorded_probe(metadata: Mapping[str, Scalar]) -> Matrix | None:
    """The probe vector a collection carries, shape (dimension,); None when it has none or it cannot be read."""
    import numpy as np

    try:
        data = base64.b64decode(str(metadata.get(PROBE) or ""), validate=True)
        vector = np.frombuffer(data, dtype="<f4").astype(np.float32)
    except (binascii.Error, ValueError):
        return None
    return vector if vector.size and bool(np.isfinite(vector).all()) else None


def identity(space: VectorSpace) -> str:
    """sha256 of protocol, model and address, each apart and every spelling of one address alike.

    The specification's form joins raw values by ``|``, so that ``a|b`` + ``c`` meets ``a`` + ``b|c``; this one cannot.
    """
    parts = json.dumps([space.protocol, space.model, _address(space), space.package.partition("==")[0]])
    return hashlib.sha256(parts.encode()).hexdigest()


def match(metadata: Mapping[str, Scalar], space: VectorSpace) -> Match:
    """Whether vectors of ``space`` may be compared with those of a collection, by names alone."""
    known = recorded(metadata)
    if known is None:
        return "unmarked"
    if known.dimension is not None and space.dimension is not None and known.dimension != space.dimension:
        return "different"
    if known.resolved_model and space.resolved_model and _bare(known.resolved_model) != _bare(space.resolved_model):
        return "different"
    if known.prefix_rule != space.prefix_rule and IDENTITY in metadata:
        return "different"
    if identity(known) == identity(space) or _answered_alike(known, space):
        return "same"
    # Raw values that agree count, unless their parts are known to differ: joined by "|" two settings may meet.
    parts_agree = not known.protocol or (known.protocol, known.model) == (space.protocol, space.model)
    return "same" if metadata[FINGERPRINT] == space.legacy_fingerprint and parts_agree else "different"


def likeness(one: Matrix, other: Matrix) -> float:
    """Cosine of two vectors; -1.0 when their dimensions differ or one is zero."""
    import numpy as np

    size = float(np.linalg.norm(one) * np.linalg.norm(other)) if one.shape == other.shape else 0.0
    return float(np.dot(one, other)) / size if size else -1.0


def _answered_alike(known: VectorSpace, space: VectorSpace) -> bool:
    """``auto`` that became a model, and the same model asked for by name, at one address."""
    there = bool(known.resolved_model) and _bare(known.resolved_model) == _bare(space.resolved_model)
    return there and known.protocol == space.protocol and _address(known) == _address(space)


def _address(space: VectorSpace) -> str:
    if space.protocol not in ("ollama-embed", "openai"):
        return space.base_url
    try:
        return normalise(space.base_url, space.protocol).identity
    except ConfigInvalid:
        return space.base_url


def _bare(model: str) -> str:
    return model.removesuffix(":latest")
