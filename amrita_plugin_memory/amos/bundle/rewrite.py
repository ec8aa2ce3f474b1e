"""Changing what is inside files on their way out or in: ids that must not travel, trust that must not arrive. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from amrita_plugin_memory.amos.ground import formats

from . import policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .policy import Selection

_WORDS: Final = ("owner", "system", "*")


def compact(value: object) -> bytes:
    """A value as JSON in few bytes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


# -- on the way out ---------------------------------------------------------------------------------------------------


def outgoing(path: str, data: bytes, selection: Selection) -> bytes:
    """The bytes that travel: in a package of one user no other user's id is told by lists or metadata."""
    if path.endswith(".jsonl"):
        data = _whole_lines(data)
    if selection.actor is None:
        return data
    name = path.rpartition("/")[2]
    if name == "acl.json":
        return _own_list(data, selection.actor)
    if name in ("metadata.json", "manifest.json"):
        return _own_author(data, selection.actor)
    return data


def versions(data: bytes, selection: Selection) -> bytes:
    """``cache_version.txt`` with the scopes that travel."""
    found = formats.load_object(data) or {}
    return formats.dump_json({key: value for key, value in found.items() if selection.covers_version(key)})


def task_travels(data: bytes, selection: Selection) -> bool:
    """True for a task that names the user who is exported and nobody else."""
    return selection.actor is None or task_actors(data) == {selection.actor}


def _whole_lines(data: bytes) -> bytes:
    end = data.rfind(b"\n") + 1
    return data if formats.load_line(data[end:]) is not None else data[:end]


def _own_list(data: bytes, actor: str) -> bytes:
    acl = formats.load_object(data)
    if acl is None:
        return data
    entries = [e for e in _dicts(acl.get("entries")) if isinstance(e.get("actors"), list)]
    kept = [{**entry, "actors": [a for a in entry["actors"] if a in (actor, *_WORDS)]} for entry in entries]
    acl["entries"] = [entry for entry in kept if entry["actors"]]
    default = acl.get("default")
    if isinstance(default, dict):
        lists = cast(
            "dict[str, list[Any]]", {k: v for k, v in cast("dict[str, Any]", default).items() if isinstance(v, list)}
        )
        acl["default"] = {k: [a for a in v if a in (actor, *_WORDS)] for k, v in lists.items()}
    return formats.dump_json(acl)


def _own_author(data: bytes, actor: str) -> bytes:
    metadata = formats.load_object(data)
    if metadata is None or metadata.get("author") in (None, actor, "system"):
        return data
    return formats.dump_json({**metadata, "author": "system"})


def tags(entries: Mapping[str, Mapping[str, Any]], paths: set[str]) -> dict[str, dict[str, Any]]:
    """Index entries of the tagged files among ``paths``, with nothing but their tags: the rest stands in the files."""
    return {path: {"tags": entry["tags"]} for path, entry in entries.items() if entry.get("tags") and path in paths}


# -- on the way in ----------------------------------------------------------------------------------------------------


def incoming(path: str, data: bytes, mapping: Mapping[str, str], *, trust_tools: bool) -> bytes:
    """The bytes that are stored: actors renamed inside lists and metadata, tools made drafts."""
    if not path.endswith(".json"):
        return data
    parts = path.split("/")
    if parts[-1] == "acl.json" or path == "acl/global.acl.json":
        return _mapped_list(data, mapping)
    if parts[0] == "tasks":
        return _mapped_task(data, mapping)
    if parts[-1] == "metadata.json" and "assets" in parts[:-2]:
        kind = parts[parts.index("assets") + 1]
        metadata = formats.load_object(data)
        if trust_tools or kind not in policy.CODE_KINDS:
            return _with_author(data, metadata, mapping)
        return formats.dump_json(draft(_mapped_author(metadata or {}, mapping)))
    if parts[-1] == "manifest.json" and parts[-3:-2] == ["agents"]:
        return _with_author(data, formats.load_object(data), mapping)
    return data


def draft(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of a tool that came from elsewhere: not executable until somebody approves it."""
    status = "deprecated" if metadata.get("status") == "deprecated" else "draft"
    return {**metadata, "status": status, "source": "import"}


def incoming_tags(data: bytes, mapping: Mapping[str, str]) -> dict[str, list[str]]:
    """Tags of a package's index by the paths that the files get here; all else in it is a stranger's word."""
    found: dict[str, list[str]] = {}
    for path, entry in (formats.load_object(data) or {}).items():
        listed = cast("dict[str, Any]", entry).get("tags") if isinstance(entry, dict) else None
        if isinstance(listed, list) and listed:
            found[mapped_path(path, mapping)] = [str(tag) for tag in cast("list[object]", listed)]
    return found


def mapped_path(path: str, mapping: Mapping[str, str]) -> str:
    """A path under the new name of its user."""
    parts = path.split("/")
    if parts[0] == "users" and len(parts) > 1:
        parts[1] = mapping.get(parts[1], parts[1])
    return "/".join(parts)


def mapped_scope(key: str, mapping: Mapping[str, str]) -> str:
    """A key of ``cache_version.txt`` under the new name of its user."""
    actor, slash, agent = key.partition("/")
    return mapping.get(actor, actor) + slash + agent


def task_actors(data: bytes) -> set[str]:
    """Whom a task names: who gave it, and whom its payload is about; empty when neither is said."""
    task = formats.load_object(data) or {}
    payload = task.get("payload")
    named = [task.get("actor"), cast("dict[str, Any]", payload).get("actor") if isinstance(payload, dict) else None]
    return {actor for actor in named if isinstance(actor, str)}


def _mapped_list(data: bytes, mapping: Mapping[str, str]) -> bytes:
    acl = formats.load_object(data)
    if acl is None or not mapping:
        return data
    acl["owner"] = mapping.get(str(acl.get("owner")), acl.get("owner"))
    for entry in _dicts(acl.get("entries")):
        entry["actors"] = _mapped(entry.get("actors"), mapping)
    default = acl.get("default")
    if isinstance(default, dict):
        acl["default"] = {k: _mapped(v, mapping) for k, v in cast("dict[str, Any]", default).items()}
    return formats.dump_json(acl)


def _mapped_task(data: bytes, mapping: Mapping[str, str]) -> bytes:
    task = formats.load_object(data)
    if task is None:
        return data
    if isinstance(task.get("actor"), str):
        task["actor"] = mapping.get(task["actor"], task["actor"])
    payload = task.get("payload")
    if isinstance(payload, dict):
        fields = cast("dict[str, Any]", payload)
        if fields.get("actor") in mapping:
            task["payload"] = {**fields, "actor": mapping[fields["actor"]]}
    if task.get("status") == "running":
        task.update(status="pending", started_at=None, worker_id=None, lease_until=None, owner=None)
    return formats.dump_json(task)


def _with_author(data: bytes, fields: dict[str, Any] | None, mapping: Mapping[str, str]) -> bytes:
    if fields is None or fields.get("author") not in mapping:
        return data
    return formats.dump_json(_mapped_author(fields, mapping))


def _mapped_author(metadata: dict[str, Any], mapping: Mapping[str, str]) -> dict[str, Any]:
    author = metadata.get("author")
    return {**metadata, "author": mapping[author]} if isinstance(author, str) and author in mapping else metadata


def _mapped(actors: object, mapping: Mapping[str, str]) -> list[Any]:
    listed = cast("list[Any]", actors) if isinstance(actors, list) else []
    return [mapping.get(actor, actor) if isinstance(actor, str) else actor for actor in listed]


def _dicts(value: object) -> list[dict[str, Any]]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in listed if isinstance(item, dict)]
