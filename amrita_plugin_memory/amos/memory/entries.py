"""Entries of ``index.json`` and changes to them. Pure: values in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, cast

from amrita_plugin_memory.amos.ground import layout, uris

Entries = dict[str, dict[str, Any]]

MAX_KEYWORDS: Final = 20
DEFINITIONS: Final = {"tools": "definition.md", "pages": "description.md", "APPs": "manifest.json"}
_WORD: Final = re.compile(r"[A-Za-z0-9_]+|[\u4e00-\u9fff]+")


def keywords(text: str) -> list[str]:
    """The first twenty words of a text, in order, as the reference implementation picks them."""
    found = _WORD.finditer(text)
    return [match.group() for match, _ in zip(found, range(MAX_KEYWORDS), strict=False)]


def entry_for(path: PurePosixPath, text: str) -> dict[str, Any] | None:
    """The entry of a workflow, a knowledge entry or an asset's definition; None for a file that is not indexed."""
    parts = path.parts[1:] if path.parts[0] == "shared" else path.parts[2:]
    match parts:
        case ("workflows", name) if name.endswith(".md"):
            found = {"kind": "memory", "type": "workflow", "name": name[:-3]}
        case ("knowledge", domain, name) if name.endswith(".md"):
            found = {"kind": "memory", "type": "knowledge", "name": f"{domain}/{name[:-3]}"}
        case ("assets", folder, name, file) if DEFINITIONS.get(folder) == file:
            word = {folder: word for word, folder in layout.ASSET_DIRS.items()}[folder]
            found = {"kind": "asset", "asset_type": word, "name": name, "description_short": ""}
        case _:
            return None
    return {**found, "keywords": keywords(text), "tags": [], "uri": _short(path, found)}


def _short(path: PurePosixPath, found: Mapping[str, Any]) -> str:
    if found["kind"] == "asset":
        return f"{uris.SCHEME}assets/{found['asset_type']}/{found['name']}"
    return f"{uris.SCHEME}{'workflows' if found['type'] == 'workflow' else 'knowledge'}/{found['name']}"


def apply(entries: Entries, changes: Iterable[Mapping[str, Any]]) -> None:
    """Make the changes, in order, in ``entries`` itself; its entries are replaced, never changed.

    Doing a change twice is the same as doing it once.
    """
    for change in changes:
        path = str(change.get("path", ""))
        old = entries.get(path, {})
        match change.get("op"):
            case "put":
                entries[path] = {**old, **change.get("entry", {}), "tags": tags_of(old)}
            case "set":
                both = dict.fromkeys([*tags_of(old), *tags_of(change.get("entry", {}))])
                entries[path] = {**old, **change.get("entry", {}), "tags": list(both)}
            case "drop":
                entries.pop(path, None)
            case "tag":
                entries[path] = {**old, "tags": [*_without(old, change), change["tag"]]}
            case "untag":
                if path in entries:
                    entries[path] = {**old, "tags": _without(old, change)}
            case _:
                pass


def tags_of(entry: Mapping[str, Any]) -> list[str]:
    """The tags of an entry."""
    found = entry.get("tags")
    return [str(tag) for tag in cast("list[object]", found)] if isinstance(found, list) else []


def _without(entry: Mapping[str, Any], change: Mapping[str, Any]) -> list[str]:
    return [tag for tag in tags_of(entry) if tag != change.get("tag")]
