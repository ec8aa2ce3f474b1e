"""What may be done to any text from outside: clean it, bound it, and make it inert inside a prompt.

Pure: values in, values out.
"""

from __future__ import annotations

import re
import unicodedata

_EMOJI_JOINERS = "\u200d\ufe0f"
_INVISIBLE = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def well_formed(text: str) -> str:
    """Replace lone surrogates, so that the text can be encoded; everything else stays."""
    return text.encode("utf-8", "replace").decode("utf-8")


def clean(text: str) -> str:
    """Text as it is stored and shown: well formed, NFC, LF line ends, no control or invisible characters.

    Zero-width joiners and variation selectors stay inside emoji sequences, which chat is full of.
    """
    normal = unicodedata.normalize("NFC", well_formed(text)).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", _INVISIBLE.sub(lambda m: _keep_in_emoji(m, normal), normal))


def _keep_in_emoji(match: re.Match[str], text: str) -> str:
    sign = match.group()
    before = text[match.start() - 1] if match.start() else ""
    return sign if sign in _EMOJI_JOINERS and before and _is_pictographic(before) else ""


def _is_pictographic(sign: str) -> bool:
    code = ord(sign)
    return code >= 0x1F000 or unicodedata.category(sign) in ("So", "Sk") or sign in "#*0123456789" + _EMOJI_JOINERS


def is_blank(text: str) -> bool:
    """True when nothing readable is left after cleaning."""
    return not clean(text).strip()


def cut(text: str, limit: int) -> str:
    """At most ``limit`` characters (code points); an ellipsis marks what is missing."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def one_line(text: str) -> str:
    """Runs of white space become one blank: for lists and log lines."""
    return " ".join(text.split())


def inert(text: str) -> str:
    """Text that cannot open or close a block of a prompt: angle brackets and ampersands become entities."""
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
