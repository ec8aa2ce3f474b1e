"""What stands at a path and whose it is. Pure: values in, values out.

An owner is ``shared``, ``users/{actor}`` or ``users/{actor}/agents/{agent}``; owners are compared whole, so that
1234 never sees what belongs to 12345.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amrita_plugin_memory.kernel.scope import Scope

ASSET_TEXTS: Final = {"tools": "definition.md", "pages": "description.md", "APPs": "manifest.json"}
_SUFFIXES: Final = (".md", ".jsonl")


@dataclass(frozen=True, slots=True)
class Place:
    """One file of a root: ``session`` is set inside a session folder, ``names`` are what people call it."""

    path: str
    owner: str
    type: str
    names: tuple[str, ...]
    session: str | None = None


def locate(path: str) -> Place | None:
    """What a relative path (``/`` between parts) is; None for anything that is not searched."""
    parts = path.split("/")
    owner = _owner(parts)
    if owner is None:
        return None
    rest = parts[len(owner.split("/")) :]
    if not rest or any(part.startswith(".") for part in rest):
        return None
    if rest[0] == "assets":
        return _asset(path, owner, rest)
    if not rest[-1].endswith(_SUFFIXES):
        return None
    kind, session = _kind(rest)
    return Place(path, owner, kind, _names(kind, rest), session)


def owners(scope: Scope) -> tuple[str, ...]:
    """Whose files a scope sees: its agent's, its user's, the shared ones; never another agent's or user's."""
    user = f"users/{scope.actor}"
    return (*([f"{user}/agents/{scope.agent}"] if scope.agent else []), user, "shared")


def session_key(owner: str, session: str) -> str:
    """One name for a session of an owner."""
    return f"{owner}/sessions/{session}"


def current_session(scope: Scope) -> str:
    """The `session_key` of the session a scope names."""
    return session_key(owners(scope)[0], scope.session)


def _owner(parts: list[str]) -> str | None:
    if parts[0] == "shared":
        return "shared"
    if parts[0] != "users" or len(parts) < 3:
        return None
    if parts[2] == "agents":
        return "/".join(parts[:4]) if len(parts) > 4 else None
    return "/".join(parts[:2])


def _kind(rest: list[str]) -> tuple[str, str | None]:
    match rest:
        case ["soul.md"]:
            return "soul", None
        case ["profile.md"]:
            return "profile", None
        case ["sessions", session, "summary.md"]:
            return "summary", session
        case ["sessions", session, "messages.jsonl"]:
            return "messages", session
        case ["sessions", session, "archive", *_]:
            return "archive", session
        case ["sessions", session, *_]:
            return "other", session
        case ["workflows", *_]:
            return "workflow", None
        case ["knowledge", *_]:
            return "knowledge", None
        case _:
            return "other", None


def _names(kind: str, rest: list[str]) -> tuple[str, ...]:
    stem = rest[-1].removesuffix(".md")
    if kind == "knowledge":
        return (*rest[1:-1], stem)
    return (stem,) if kind in ("workflow", "other") else ()


def _asset(path: str, owner: str, rest: list[str]) -> Place | None:
    if len(rest) == 4 and ASSET_TEXTS.get(rest[1]) == rest[3]:
        return Place(path, owner, {"tools": "tool", "pages": "page", "APPs": "app"}[rest[1]], (rest[2],))
    return None
