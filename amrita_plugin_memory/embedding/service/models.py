"""Which model of a server embeds texts: the meaning of ``EMBEDDING_MODEL_NAME=auto``.

Pure: values in, values out. The result does not depend on the order of the server's list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Multilingual models that are good at Chinese first, then the rest; first match decides the rank.
_KNOWN: Final = (
    r"bge-m3", r"qwen3?-?embed", r"(multilingual-)?e5", r"gte-(multilingual|qwen|large-zh|base-zh)", r"bge-.*zh",
    r"(conan|xiaobu|stella|acge|bce|m3e|piccolo|yinka|zpoint)", r"jina-embed", r"embeddinggemma",
    r"paraphrase-multilingual", r"labse", r"text-embedding-3-small", r"text-embedding", r"snowflake-arctic-embed",
    r"nomic-embed", r"mxbai-embed", r"bge-", r"gte-", r"all-minilm", r"voyage-", r"embed",
)  # fmt: skip
_RANKED: Final = tuple(re.compile(rf"(^|[/_.:-]){pattern}", re.IGNORECASE) for pattern in _KNOWN)
_NOT_EMBEDDING: Final = re.compile(r"rerank|chat|instruct-chat|clip|vision|whisper|tts", re.IGNORECASE)
_NAMES_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model a server says it has; ``embeds`` is None when the server does not say what it can do."""

    name: str
    embeds: bool | None = None


def pick(models: Sequence[ServedModel], *, prefer: str = "") -> str | None:
    """The embedding model to use, ``prefer`` before any other; None when none of them is known to embed."""
    able = {model.name: _rank(model) for model in models if embeds(model)}
    for name in able:
        if prefer and same_model(name, prefer):
            return name
    return min(able, key=lambda name: (able[name], name), default=None)


def embeds(model: ServedModel) -> bool:
    """What the server says, else what the name says."""
    if model.embeds is not None:
        return model.embeds
    return _rank(model) < len(_RANKED) and not _NOT_EMBEDDING.search(model.name)


def same_model(one: str, other: str) -> bool:
    """Names are equal, a missing tag being Ollama's ``latest``."""
    return one.removesuffix(":latest").lower() == other.removesuffix(":latest").lower()


def named(models: Sequence[ServedModel]) -> str:
    """The server's models for a sentence, bounded."""
    names = sorted(model.name for model in models)
    if not names:
        return "没有任何模型"
    more = f" 等 {len(names)} 个" if len(names) > _NAMES_SHOWN else ""
    return "只有 " + "、".join(names[:_NAMES_SHOWN]) + more


def _rank(model: ServedModel) -> int:
    return next((rank for rank, pattern in enumerate(_RANKED) if pattern.search(model.name)), len(_RANKED))
