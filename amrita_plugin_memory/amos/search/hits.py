"""What a search takes and gives, and how hits are written into a prompt. Pure: values in, values out."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from amrita_plugin_memory.kernel.errors import InvalidInput, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

SearchScope: TypeAlias = Literal["all", "session", "profile", "workflow", "knowledge", "archive"]
InjectMode: TypeAlias = Literal["full", "preview", "reference"]
Source: TypeAlias = Literal["memory", "asset", "archive"]

TYPES: Final[dict[SearchScope, tuple[str, ...]]] = {
    "all": ("soul", "profile", "summary", "messages", "archive", "workflow", "knowledge", "other"),
    "session": ("summary", "messages", "archive"),
    "profile": ("soul", "profile"),
    "workflow": ("workflow",),
    "knowledge": ("knowledge",),
    "archive": ("archive",),
}
MAX_TOP_K: Final = 1_000


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Narrowing of a search; ``since`` may be aware, or naive and then in local time."""

    scope: SearchScope = "all"
    min_score: float = 0.0
    since: datetime | None = None
    exact_phrases: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.scope not in TYPES:
            raise InvalidInput(f"检索范围 {shorten(self.scope)} 不存在，可用：{' '.join(TYPES)}")
        if not self.min_score >= 0:
            raise InvalidInput("min_score 不能为负数")


@dataclass(frozen=True, slots=True)
class RetrieveOptions:
    """What ``build_messages`` looks up and in which form it is injected."""

    top_k: int = 5
    min_score: float = 0.0
    inject_mode: InjectMode = "full"

    def __post_init__(self) -> None:
        check_top_k(self.top_k)
        check_mode(self.inject_mode)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A memory file that answers, best first; ``path`` is relative to the root with ``/``, ``score`` > 0."""

    path: str
    uri: str | None
    type: str
    score: float
    snippet: str
    keywords_matched: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class SearchAllHit:
    """A hit among memory, archive or assets."""

    source: Source
    path: str
    uri: str | None
    type: str
    score: float
    snippet: str
    keywords_matched: list[str] = field(default_factory=list[str])


def check_top_k(top_k: int) -> int:
    """``top_k`` itself, bounded by 1000; 0 is allowed and finds nothing.

    Raises:
        InvalidInput: negative or no integer.

    """
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 0:
        raise InvalidInput(f"top_k 必须是不小于 0 的整数，收到的是 {shorten(top_k)}")
    return min(top_k, MAX_TOP_K)


def check_mode(mode: str) -> None:
    """Raise InvalidInput for an unknown inject mode."""
    if mode not in get_args(InjectMode):
        raise InvalidInput(f"注入方式 {shorten(mode)} 不存在，可用：{' '.join(get_args(InjectMode))}")


def render(hits: Sequence[SearchHit | SearchAllHit], mode: InjectMode = "full") -> str | None:
    """Hits as the text that is injected: blocks parted by a blank line; None when there are none.

    The text of memories is not made inert here; the prompt's own renderer does that once for everything.
    """
    check_mode(mode)
    return "\n\n".join(_block(hit, mode) for hit in hits) or None


def _block(hit: SearchHit | SearchAllHit, mode: InjectMode) -> str:
    if mode == "reference":
        return f"[参考文件] {hit.path}"
    if mode == "preview":
        return f"[相关记忆] {hit.snippet}"
    uri = f"  ({hit.uri})" if hit.uri else ""
    return f"[{hit.type}] {hit.path}{uri}\n{hit.snippet}"
