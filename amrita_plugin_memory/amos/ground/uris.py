"""``amos://`` URIs and relative paths, both ways. Pure.

Long forms name the owner (``amos://users/{a}/knowledge/{d}/{e}``, ``amos://shared/soul``, ``amos://tasks/{state}/{id}``).
Short forms, as ``index.json`` carries them, do not (``amos://knowledge/…``, ``amos://workflows/…``,
``amos://assets/{type}/{name}``); they are resolved against a scope, the user's own before the shared one.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote, unquote

from amrita_plugin_memory.amos.errors import MemoryURIError
from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.scope import Scope

from . import layout

SCHEME: Final = "amos://"
_ASSET_WORDS: Final = {folder: word for word, folder in layout.ASSET_DIRS.items()}


def to_path(uri: str) -> PurePosixPath:
    """The relative path a long URI names.

    Raises:
        MemoryURIError: not an ``amos://`` URI of this protocol, or a short form, which needs a scope.
        InvalidName: a part that cannot be a path component.

    """
    parts = _parts(uri)
    path = _top(parts)
    if path is None:
        raise MemoryURIError(f"无法识别的记忆地址 {uri[:60]!r}，请检查写法")
    return path


def candidates(uri: str, scope: Scope) -> tuple[PurePosixPath, ...]:
    """Paths a URI may name for a scope, the strongest first: one for a long form, user then shared for a short one.

    Raises:
        MemoryURIError: not an ``amos://`` URI of this protocol.
        InvalidName: a part that cannot be a path component.

    """
    parts = _parts(uri)
    found = tuple(path for owner in layout.owners(scope) if (path := _listed(owner, parts)) is not None)
    return found or (to_path(uri),)


def from_path(path: PurePosixPath | str) -> str | None:
    """The long URI of a relative path; None for a file the protocol gives no address (archives, logs, locks)."""
    parts = list(PurePosixPath(path).parts)
    if not parts:
        return None
    if parts[0] == "tasks":
        return _task_uri(parts)
    for suffix in (".md", ".jsonl", ".json", ""):
        if parts[-1].endswith(suffix):
            words = [*parts[:-1], parts[-1][: len(parts[-1]) - len(suffix)]]
            uri = SCHEME + "/".join(quote(word, safe="") for word in _spoken(words))
            if _resolves_to(uri, PurePosixPath(*parts)):
                return uri
    return None


def short(path: PurePosixPath | str) -> str | None:
    """The short URI that ``index.json`` carries for workflows, knowledge and assets; None for anything else."""
    parts = list(PurePosixPath(path).parts)
    owned = parts[1:] if parts[:1] == ["shared"] else parts[2:] if parts[:1] == ["users"] else []
    if len(owned) < 2 or owned[0] not in ("workflows", "knowledge", "assets"):
        return None
    if owned[0] == "assets":
        owned = owned[:3]
    else:
        owned[-1] = owned[-1].removesuffix(".md")
    return SCHEME + "/".join(quote(word, safe="") for word in _spoken(owned))


def _parts(uri: str) -> list[str]:
    if not uri.startswith(SCHEME):
        raise MemoryURIError(f"记忆地址要以 {SCHEME} 开头，收到的是 {uri[:60]!r}")
    return [unquote(part, errors="surrogatepass") for part in uri[len(SCHEME) :].split("/")]


def _top(parts: list[str]) -> PurePosixPath | None:
    match parts:
        case ["shared", *rest]:
            return _shared(rest)
        case ["users", actor, *rest]:
            return _user(actor, rest)
        case ["tasks", state, task_id]:
            return layout.task(state, task_id)
        case _:
            return None


def _shared(rest: list[str]) -> PurePosixPath | None:
    return layout.soul(layout.SHARED) if rest == ["soul"] else _listed(layout.SHARED, rest)


def _user(actor: str, rest: list[str]) -> PurePosixPath | None:
    home = layout.user_dir(actor)
    match rest:
        case ["profile"]:
            return layout.profile(actor)
        case ["acl"]:
            return layout.user_acl(actor)
        case ["agents", agent, "manifest"]:
            return layout.agent_manifest(actor, agent)
        case ["agents", agent, *more]:
            return _homed(layout.make_scope(actor, agent), more)
        case _:
            return _homed(layout.make_scope(actor), rest) or _listed(home, rest)


def _homed(scope: Scope, rest: list[str]) -> PurePosixPath | None:
    match rest:
        case ["soul"]:
            return layout.soul(layout.home_dir(scope))
        case ["sessions", session, ("summary" | "messages") as part]:
            here = layout.make_scope(scope.actor, scope.agent, session)
            return layout.summary(here) if part == "summary" else layout.messages(here)
        case _:
            return None


def _listed(owner: PurePosixPath, rest: list[str]) -> PurePosixPath | None:
    match rest:
        case ["workflows", name]:
            return layout.workflow(owner, name)
        case ["knowledge", domain, entity]:
            return layout.knowledge(owner, domain, entity)
        case ["assets", kind, name]:
            return layout.asset_dir(owner, _ASSET_WORDS.get(kind, kind), name)
        case _:
            return None


def _spoken(words: list[str]) -> list[str]:
    """Asset folders are spoken of by their type: ``tools`` on disk is ``tool`` in a URI."""
    at = {"shared": 1, "users": 2}.get(words[0], 0)
    if words[at : at + 1] != ["assets"]:
        return words
    return [_ASSET_WORDS.get(word, word) if index == at + 1 else word for index, word in enumerate(words)]


def _task_uri(parts: list[str]) -> str | None:
    name = parts[-1]
    if len(parts) != 3 or not (name.startswith("task_") and name.endswith(".json")):
        return None
    uri = f"{SCHEME}tasks/{quote(parts[1], safe='')}/{quote(name[5:-5], safe='')}"
    return uri if _resolves_to(uri, PurePosixPath(*parts)) else None


def _resolves_to(uri: str, path: PurePosixPath) -> bool:
    try:
        return to_path(uri) == path
    except InvalidInput:
        return False
