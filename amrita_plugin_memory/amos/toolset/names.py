"""Tool names, both ways: dotted as the protocol speaks (``memory.search``), legal as function calling wants them. Pure.

Whatever spelling a model or a program uses (``memory.replaceSoul``, ``memory.replace_soul``, ``memory_replace_soul``)
means the same tool.
"""

from __future__ import annotations

import re
from typing import Final

GROUPS: Final = ("memory", "asset", "tool")
_UPPER: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def legal(name: str) -> str:
    """The name function calling accepts: ``[a-z0-9_]``, at most 64 signs."""
    return snake(name.strip()).replace(".", "_")


def dotted(name: str) -> str:
    """The name the protocol uses, from either form."""
    group, _, rest = legal(name).partition("_")
    return f"{group}.{rest}" if group in GROUPS and rest else legal(name)


def snake(name: str) -> str:
    """``relPath`` as ``rel_path``; what is snake already stays."""
    return _UPPER.sub(lambda match: "_" + match[1].lower(), name).lower() if name != name.lower() else name
