"""Entries of ``index.json`` and changes to them. Pure: values in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from amrita_plugin_memory.amos.ground import layout, uris

Entries = dict[str, dict[str, Any]]

MAX_KEYWORDS: Final = 20
DEFINITIONS: Final = {"tools": "definition.md", "pages": "description.md", "APPs": "manifest.json"}
_WORDS: Final = {folder: word for word, folder in layout.ASSET_DIRS.items()}
_WORD: Final = re.compile(r"[A-Za-z0-9_]+|[\u4e00-\u9fff]+")


def keywords(text: str) -> list[str]:
    """The first twenty words of a text, in order, as the reference implementation picks them."""
    return [match.group() for match in islice(_WORD.finditer(text), MAX_KEYWORDS)]


def entry_for(parts: Sequence[str], text: str) -> dict[str, Any] | None:
    """The entry of a workflow, a knowledge entry or an asset's definition; None for a file that is not indexed.

    ``parts`` are the components of its path below the root.
    """
    match parts[1 if parts[0] == "shared" else 2 :]:
        case ("workflows", file) if file.endswith(".md"):
            name = file[:-3]
            found = {"kind": "memory", "type": "workflow", "name": name}
            uri = f"{uris.SCHEME}workflows/{name}"
        case ("knowledge", domain, file) if file.endswith(".md"):
            name = f"{domain}/{file[:-3]}"
            found = {"kind": "memory", "type": "knowledge", "name": name}
            uri = f"{uris.SCHEME}knowledge/{name}"
        case ("assets", folder, name, file) if DEFINITIONS.get(folder) == file:
            word = _WORDS[folder]
            found = {"kind": "asset", "asset_type": word, "name": name, "description_short": ""}
            uri = f"{uris.SCHEME}assets/{word}/{name}"
        case _:
            return None
    return {**found, "keywords": keywords(text), "tags": [], "uri": uri}


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
            case "drop":
                entries.pop(path, None)
            case "tag":
                entries[path] = {**old, "tags": [*_without(old, change), change["tag"]]}
            case "untag":
                if path in entries:
                    entries[path] = {**old, "tags": _without(old, change)}
            case _:
                pass


def merge(entries: Entries, new: Mapping[str, dict[str, Any]]) -> None:
    """Set many entries in ``entries`` itself, their tags added to those that are there."""
    for path, entry in new.items():
        old = entries.get(path)
        if old is None:
            entries[path] = entry
        else:
            entries[path] = {**old, **entry, "tags": list(dict.fromkeys([*tags_of(old), *tags_of(entry)]))}


def tags_of(entry: Mapping[str, Any]) -> list[str]:
    """The tags of an entry."""
    found = entry.get("tags")
    return list(map(str, cast("list[object]", found))) if isinstance(found, list) else []


def _without(entry: Mapping[str, Any], change: Mapping[str, Any]) -> list[str]:
    return [tag for tag in tags_of(entry) if tag != change.get("tag")]
