"""What is done to a text before any model sees it. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.text import clean


@dataclass(frozen=True, slots=True)
class Prepared:
    """Texts ready to embed, in the order given; ``cut`` of them were longer than the limit and lost their end."""

    texts: tuple[str, ...]
    cut: int


def prepare(texts: Sequence[str], limit: int) -> Prepared:
    """Clean each text (lone surrogates, control and invisible characters) and cut it to ``limit`` characters.

    Raises:
        InvalidInput: a blank text, or a bare string where a list of texts belongs.

    """
    if isinstance(texts, str):
        raise InvalidInput("要嵌入的应是文本列表，收到的是单个字符串")
    cleaned = [clean(text).strip() for text in texts]
    for place, text in enumerate(cleaned, start=1):
        if not text:
            raise InvalidInput(f"要嵌入的文本不能为空（第 {place} 条），请写上内容")
    return Prepared(tuple(text[:limit] for text in cleaned), sum(len(text) > limit for text in cleaned))


def cut_note(cut: int, limit: int) -> str:
    """One line for the log when something was cut."""
    return f"{cut} 条文本超过 {limit} 字，只用前 {limit} 字计算向量（原文完整保存，按字词仍可检索）"


def chunks(texts: Sequence[str], size: int, *, chars: int | None = None) -> Iterator[tuple[str, ...]]:
    """Consecutive pieces of at most ``size`` texts and, but for a single longer text, ``chars`` characters."""
    piece: list[str] = []
    for text in texts:
        full = len(piece) >= size or (chars is not None and sum(map(len, piece)) + len(text) > chars)
        if piece and full:
            yield tuple(piece)
            piece = []
        piece.append(text)
    if piece:
        yield tuple(piece)
