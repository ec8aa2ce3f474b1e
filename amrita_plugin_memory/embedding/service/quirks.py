"""What an endpoint taught us, and how a refusal becomes a lesson.

Pure: values in, values out. A lesson is tried on the call at hand and kept only when that call then succeeds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from .faults import ServiceFault

_NUMBER: Final = re.compile(r"\d+")
_SIZE_WORDS: Final = re.compile(
    r"batch|too many|at most|no more than|larger than|exceed|maximum|array|数组|超过|最多|最大|上限|批|返回 \d+ 条",
    re.IGNORECASE,
)
_LENGTH_WORDS: Final = re.compile(
    r"\d\s*tokens?\b|too many tokens|tokens?\W.{0,20}(?:limit|exceed|超)|(?:limit|exceed|max|超).{0,30}tokens?\b"
    r"|context.?(?:length|window|size)|too long|too large to process|(?:input|text|sequence|prompt) length"
    r"|过长|太长|超长|长度",
    re.IGNORECASE,
)
_WHOLE_WORDS: Final = re.compile(
    r"per request|request size|total|(?:of|in) (?:the|a|one) batch|array|数组|总|每次|一次", re.IGNORECASE
)
_MODEL_WORDS: Final = re.compile(r"model|模型", re.IGNORECASE)
SHORTEST: Final = 64  # characters; a server that refuses even so few means something else
UNBOUNDED: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Quirks:
    """``batch`` is the most inputs a call, ``chars`` the most characters of one input.

    The flags say which optional parts of the request the endpoint bears.
    """

    batch: int
    chars: int = UNBOUNDED
    dimensions: bool = True
    encoding_format: bool = True
    old_route: bool = False

    def merged(self, other: Quirks) -> Quirks:
        """Both lessons at once."""
        return Quirks(
            batch=min(self.batch, other.batch),
            chars=min(self.chars, other.chars),
            dimensions=self.dimensions and other.dimensions,
            encoding_format=self.encoding_format and other.encoding_format,
            old_route=self.old_route or other.old_route,
        )


def lesson(quirks: Quirks, fault: ServiceFault, *, sent: int, longest: int = 0) -> Quirks | None:
    """How to ask again after ``fault`` on a request of ``sent`` texts, the longest of ``longest`` characters.

    None when there is nothing left to change.
    """
    if fault.kind == "missing":
        return _without_route(quirks, fault)
    if too_long(fault) and (sent == 1 or _is_about_one_text(fault)):
        return replace(quirks, chars=max(longest // 2, SHORTEST)) if longest > SHORTEST else None
    if fault.kind not in ("request", "answer"):
        return None
    return _named(quirks, fault, sent) or _guessed(quirks, fault, sent)


def too_long(fault: ServiceFault) -> bool:
    """Whether the server finds what was sent too long; some call that an error of their own (500)."""
    if fault.kind not in ("request", "answer", "server"):
        return False
    return fault.status == 413 or bool(_LENGTH_WORDS.search(fault.detail))


def _is_about_one_text(fault: ServiceFault) -> bool:
    # A bare 413, or a bound on all tokens of a request, is met by fewer texts without cutting any.
    return bool(_LENGTH_WORDS.search(fault.detail)) and not _WHOLE_WORDS.search(fault.detail)


def _without_route(quirks: Quirks, fault: ServiceFault) -> Quirks | None:
    if quirks.old_route or _MODEL_WORDS.search(fault.detail):
        return None
    return replace(quirks, old_route=True)


def _named(quirks: Quirks, fault: ServiceFault, sent: int) -> Quirks | None:
    words = fault.detail.lower().replace(" ", "_")
    if quirks.encoding_format and ("encoding_format" in words or "base64" in words):
        return replace(quirks, encoding_format=False)
    if quirks.dimensions and "dimension" in words:
        return replace(quirks, dimensions=False)
    if sent > 1 and _SIZE_WORDS.search(fault.detail):
        limits = [n for n in map(int, _NUMBER.findall(fault.detail)) if 1 <= n < sent]
        return replace(quirks, batch=max(limits, default=sent // 2))
    return None


def _guessed(quirks: Quirks, fault: ServiceFault, sent: int) -> Quirks | None:
    if fault.kind == "request" and fault.status != 413:
        if quirks.encoding_format:
            return replace(quirks, encoding_format=False)
        if quirks.dimensions:
            return replace(quirks, dimensions=False)
    return replace(quirks, batch=sent // 2) if sent > 1 else None
