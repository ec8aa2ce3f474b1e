"""Names from outside become path components here, and nowhere else. Pure: values in, values out.

A component is letters, marks and digits of any script plus a few signs, in NFC, without a leading dot, a trailing dot
or space, invisible or control characters, a name Windows reserves, or more bytes than a file name may have.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from amrita_plugin_memory.kernel.errors import InvalidName
from amrita_plugin_memory.kernel.text import clean

MAX_BYTES: Final = 255
_RESERVE: Final = 5  # room for ".lock" behind every file name
_SIGNS: Final = frozenset("_-. @+#()·（）")
_UNSEEN: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
)  # letters and marks that print nothing
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")
_DEVICE: Final = "这是 Windows 保留的名字"
_DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789")]
)


def component(name: object, *, what: str, suffix: str = "") -> str:
    """The path component for a name from outside, in NFC; ``suffix`` (".md") only counts towards the length.

    Args:
        name: what the caller gave; anything but a usable string is refused.
        what: the Chinese word for the thing named, for the error sentence.
        suffix: what the caller will append to make the file name.

    Raises:
        InvalidName: with the reason as one Chinese clause.

    """
    if not isinstance(name, str):
        raise InvalidName(what=what, name=type(name).__name__, why="必须是文字")
    why = _objection(normal := unicodedata.normalize("NFC", name), suffix)
    if why:
        raise InvalidName(what=what, name=name, why=why)
    return normal


def is_component(name: object) -> bool:
    """True when `component` would accept the name as it stands."""
    return isinstance(name, str) and unicodedata.normalize("NFC", name) == name and not _objection(name, "")


def fold(name: str) -> str:
    """The key under which two names meet on a disk that is blind to case (NTFS, APFS)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


@lru_cache(maxsize=4096)
def _objection(name: str, suffix: str) -> str:
    if _PLAIN.fullmatch(name) and len(name) + len(suffix) <= MAX_BYTES - _RESERVE:  # as nearly all are
        return _DEVICE if name.partition(".")[0].lower() in _DEVICES else ""
    if not name.strip():
        return "不能为空"
    if any(0xD800 <= ord(sign) <= 0xDFFF for sign in name) or not all(map(_is_allowed, name)) or clean(name) != name:
        return "只能用文字、数字、空格和 _ - . @ + # ( ) ·"
    return _shape_objection(name) or _length_objection(name + suffix)


def _shape_objection(name: str) -> str:
    if name[0] == "." or name[-1] in ". " or name[0] == " ":
        return "不能以点或空格开头或结尾"
    if unicodedata.category(name[0]).startswith("M"):
        return "不能以组合符号开头"
    stem = unicodedata.normalize("NFKC", name.split(".", 1)[0]).strip().casefold()
    return _DEVICE if stem in _DEVICES else ""


def _length_objection(file_name: str) -> str:
    return "太长了，请缩短" if len(file_name.encode()) > MAX_BYTES - _RESERVE else ""


def _is_allowed(sign: str) -> bool:
    if sign in _SIGNS:
        return True
    return unicodedata.category(sign)[0] in "LMN" and sign not in _UNSEEN
