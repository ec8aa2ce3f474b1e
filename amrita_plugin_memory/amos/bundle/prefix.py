"""What a scope reads at the beginning of its prompts, before and after an import, and the versions that follow. Blocks.

`cache_version.txt` moves when and only when the prefix of a scope reads differently, as with every other write.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, TypeAlias

from amrita_plugin_memory.amos.ground import FileRoot, formats, layout, names
from amrita_plugin_memory.kernel.scope import Scope
from amrita_plugin_memory.kernel.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Reading: TypeAlias = "dict[str, dict[str, str]]"
FIRST: Final = 1
_TEXTS: Final = ("/soul.md", "/profile.md", "/summary.md")


def reading(files: FileRoot, paths: Iterable[str], keys: Callable[[], Iterable[str]]) -> Reading:
    """A digest of what each scope reads, by the soul, profile or summary among ``paths`` that may change it.

    ``keys()`` are scopes, as ``cache_version.txt`` names them, that are looked at though they have no folder.
    """
    owners = {path: _owner(path.split("/")) for path in paths if path.endswith(_TEXTS)}
    found = {path: owner for path, owner in owners.items() if owner is not None}
    if not found:
        return {}
    known = {*keys(), *stored(files)}
    return {path: {key: _digest(files, path, key) for key in _readers(files, found[path], known)} for path in found}


def bump(files: FileRoot, before: Reading, theirs: Mapping[str, int]) -> None:
    """Raise the version of each scope that reads differently now; never below the one it had in the package."""
    changed = {
        key for path, scopes in before.items() for key, digest in scopes.items() if _digest(files, path, key) != digest
    }
    if not changed:
        return
    with files.lock(layout.CACHE_VERSION):
        mine = stored(files)
        for key in changed:
            sent = theirs.get(key, FIRST)
            mine[key] = max(mine[key], sent) + 1 if key in mine else max(sent, FIRST + 1)
        files.write_json(layout.CACHE_VERSION, mine)


def stored(files: FileRoot) -> dict[str, int]:
    """The versions of a root; what is no number is left out."""
    return counts(files.read(layout.CACHE_VERSION) or b"{}")


def counts(data: bytes) -> dict[str, int]:
    """The numbers of a ``cache_version.txt``."""
    found = formats.load_object(data) or {}
    return {key: value for key, value in found.items() if isinstance(value, int) and not isinstance(value, bool)}


def scopes_of(paths: Iterable[str]) -> set[str]:
    """Users and agents that paths belong to."""
    found: set[str] = set()
    for path in paths:
        match path.split("/", 4):
            case ["users", actor, "agents", agent, _]:
                found |= {actor, f"{actor}/{agent}"}
            case ["users", actor, *_]:
                found.add(actor)
            case _:
                pass
    return found


def _owner(parts: list[str]) -> str | None:
    """Who reads a text: ``""`` everybody, ``u`` a user with all agents, ``u/`` without, ``u/a`` one; None: nobody."""
    match parts:
        case ["shared", "soul.md"]:
            return ""
        case ["users", actor, "soul.md" | "profile.md"]:
            return actor
        case ["users", actor, "agents", agent, "soul.md"] | [
            "users",
            actor,
            "agents",
            agent,
            "sessions",
            _,
            "summary.md",
        ]:
            return f"{actor}/{agent}"
        case ["users", actor, "sessions", _, "summary.md"]:
            return f"{actor}/"
        case _:
            return None


def _readers(files: FileRoot, owner: str, known: set[str]) -> set[str]:
    if "/" in owner:
        return {owner.rstrip("/")}
    actors = {owner} if owner else {*files.dirs(layout.USERS), *(key.partition("/")[0] for key in known)}
    found = {key for key in known if key.partition("/")[0] in actors}
    for actor in filter(names.is_component, actors):
        found |= {actor, *(f"{actor}/{agent}" for agent in files.dirs(layout.USERS / actor / "agents"))}
    return {key for key in found if all(map(names.is_component, key.split("/", 1)))}


def _digest(files: FileRoot, path: str, key: str) -> str:
    actor, _, agent = key.partition("/")
    chain = (PurePosixPath(path),)
    if path.endswith("/soul.md"):
        chain = layout.soul_chain(Scope(actor, agent or None))
    texts = (files.read_text(place) or "" for place in chain)
    said = next((text for text in texts if text.strip()), "")
    return hashlib.sha256(clean(said).strip("\n").encode()).hexdigest()
