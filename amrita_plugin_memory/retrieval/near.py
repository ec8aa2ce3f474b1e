"""When two texts say the same in nearly the same letters. Pure.

Vectors cannot tell: "喜欢" and "不喜欢" lie as near as two paraphrases. So only what carries no content may differ:
punctuation, blanks, case, width, and words that merely close a sentence. A number, a name, a negation always counts.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# 吗 asks and 吧 doubts, so these two stay.
_CLOSING: Final = re.compile(
    r"(?:[了啊呢呀啦哈嘛哦噢喔哟呗的]|谢谢|哈哈"
    r"|(?<![^\W\d_])(?:now|too|please|thanks|thank you|ok|okay|indeed|anyway|though))+$"
)
# Between digits these are part of the number: 3.5, 1:30, 5-3, 1/2; so is a sign before one.
_MARK: Final = re.compile(r"(?<=\d)[.,:/%-](?=\d)|[-+](?=\d)|[%‰℃°$€¥￥#@+]")
_SPLIT: Final = re.compile(r"[^\w]+", re.UNICODE)


def essence(text: str) -> str:
    """What two near-identical texts have in common, and two different ones do not."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = _MARK.sub(lambda found: f"_{ord(found.group()):x}_", folded)
    words = " ".join(part for part in _SPLIT.split(kept) if part)
    while (shorter := _CLOSING.sub("", words).strip()) != words and shorter:
        words = shorter
    return _joined(words) or " ".join(folded.split())


def _joined(words: str) -> str:
    # Blanks part English words but mean nothing between Chinese characters.
    return re.sub(r"(?<![a-z0-9_]) | (?![a-z0-9_])", "", words)
