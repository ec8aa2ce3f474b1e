"""``cache_version.txt``: how often the stable prefix of a scope has changed, ``{"actor": 3, "actor/agent": 2}``."""

from __future__ import annotations

from collections.abc import Iterable

from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.ground.formats import load_object
from amrita_plugin_memory.kernel.scope import Scope

FIRST = 1


def key(scope: Scope) -> str:
    """The name of a scope in the file."""
    return scope.actor if scope.agent is None else f"{scope.actor}/{scope.agent}"


def get(files: FileRoot, scope: Scope) -> int:
    """The version of a scope; 1 as long as nothing has changed."""
    return _read(files).get(key(scope), FIRST)


def bump(files: FileRoot, scopes: Iterable[Scope]) -> None:
    """Add one to each scope; a file that is no JSON object of numbers is mended on the way."""
    keys = {key(scope) for scope in scopes}
    if not keys:
        return
    with files.lock(layout.CACHE_VERSION):
        versions = _read(files)
        versions.update({name: versions.get(name, FIRST) + 1 for name in keys})
        files.write_json(layout.CACHE_VERSION, versions)


def forget(files: FileRoot, actor: str) -> None:
    """Take an actor and its agents out of the file."""
    with files.lock(layout.CACHE_VERSION):
        files.write_json(layout.CACHE_VERSION, {k: v for k, v in _read(files).items() if k.partition("/")[0] != actor})


def _read(files: FileRoot) -> dict[str, int]:
    found = load_object(files.read(layout.CACHE_VERSION) or b"") or {}
    return {name: number for name, number in found.items() if isinstance(number, int) and not isinstance(number, bool)}
