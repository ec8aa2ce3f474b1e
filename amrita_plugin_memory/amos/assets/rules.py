"""What an asset may be called and made of, and how its metadata moves on. Pure: values in, values out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from amrita_plugin_memory.amos.errors import InvalidAssetError
from amrita_plugin_memory.amos.ground import layout, names
from amrita_plugin_memory.kernel.errors import InvalidInput, InvalidName, shorten
from amrita_plugin_memory.kernel.text import clean, cut

ASSET_TYPES: Final = tuple(layout.ASSET_DIRS)
DEFINITIONS: Final = {"tool": "definition.md", "page": "description.md", "app": "manifest.json"}
SCHEMA: Final = "schema.json"
METADATA: Final = "metadata.json"
BACKUP: Final = "backup"
CODE: Final = "code.py"
KEEP_BACKUPS: Final = 10
MAX_FILES: Final = 64
MAX_FILE: Final = 512 << 10  # characters
MAX_TOTAL: Final = 4 << 20
MAX_SCHEMA: Final = 32 << 10  # bytes of JSON
MAX_DESCRIPTION: Final = 400  # characters that are shown beside a name
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEPT: Final = frozenset(("created_at", "updated_at", "version", "files", "author"))
_STATES: Final = ("active", "draft", "deprecated")


@dataclass(frozen=True, slots=True)
class AssetDraft:
    """A new asset: Markdown, code files by relative name, and the author's own metadata."""

    definition: str
    code_files: Mapping[str, str] = field(default_factory=dict[str, str])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AssetUpdate:
    """What changes in an asset; None leaves a part alone, a code file that is None goes."""

    definition: str | None = None
    code_files: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    schema: Mapping[str, Any] | None = None


def check_type(asset_type: object) -> str:
    """The type itself.

    Raises:
        InvalidAssetError: not tool, page or app.

    """
    if asset_type not in ASSET_TYPES:
        raise InvalidAssetError(f"资产类型只能是 {'、'.join(ASSET_TYPES)}，收到的是 {shorten(asset_type)}")
    return str(asset_type)


def check_name(name: object) -> str:
    """The name itself: ASCII letters, digits, ``_`` and ``-``, at most 64, and no name Windows reserves.

    Raises:
        InvalidName: anything else, also with a line end behind it.

    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidName(what="资产", name=name, why="只能用字母、数字、下划线和连字符，最多 64 个")
    return names.component(name, what="资产")


def check_files(asset_type: str, given: Mapping[str, str | None]) -> dict[str, str | None]:
    """Code files by checked relative name.

    Raises:
        InvalidAssetError: a name that leaves the asset, is one of ours, or differs from another only by case; a file
            that is no text; too many or too long.

    """
    if len(given) > MAX_FILES:
        raise InvalidAssetError(f"一个资产最多 {MAX_FILES} 个文件，请合并")
    seen: dict[str, str] = {}
    for name, text in given.items():
        checked = _file_name(asset_type, name)
        if text is not None and not isinstance(text, str):
            raise InvalidAssetError(f"文件 {shorten(name)} 的内容必须是文字")
        if text is not None and len(text) > MAX_FILE:
            raise InvalidAssetError(f"文件 {shorten(name)} 超过 {MAX_FILE // 1024} K 字，请精简")
        if seen.setdefault(names.fold(checked), name) != name:
            raise InvalidAssetError(f"文件 {shorten(name)} 与另一个文件只差大小写，请改名")
    if sum(len(text or "") for text in given.values()) > MAX_TOTAL:
        raise InvalidAssetError(f"资产总共超过 {MAX_TOTAL >> 20} M 字，请精简")
    return dict(given)


def check_definition(asset_type: str, text: object) -> str:
    """The text of the definition; an app's is JSON.

    Raises:
        InvalidAssetError: no text, too long, or for an app no JSON object.

    """
    if not isinstance(text, str):
        raise InvalidAssetError("资产的定义必须是文字")
    if len(text) > MAX_FILE:
        raise InvalidAssetError(f"资产的定义超过 {MAX_FILE // 1024} K 字，请精简")
    return text


def check_schema(schema: object) -> dict[str, Any]:
    """A JSON schema of a tool's parameters.

    Raises:
        InvalidAssetError: no object schema, not JSON, or too big.

    """
    if not isinstance(schema, Mapping):
        raise InvalidAssetError("工具的 schema 必须是一个 JSON 对象")
    try:
        text = json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidAssetError("工具的 schema 里有不能写成 JSON 的值，请检查") from error
    if len(text) > MAX_SCHEMA:
        raise InvalidAssetError(f"工具的 schema 超过 {MAX_SCHEMA // 1024} KiB，请精简")
    return json.loads(text)


def first_metadata(given: Mapping[str, Any], *, author: str, now: str, files: Sequence[str]) -> dict[str, Any]:
    """``metadata.json`` of a new asset."""
    own = _own(given)
    fixed = {"created_at": now, "updated_at": now, "version": _first_version(given), "author": author}
    tags = [str(tag) for tag in _list(own.get("tags"))]
    rest = {"tags": tags, "dependencies": _list(own.get("dependencies")), "last_used": None}
    return {**fixed, **rest, **{k: v for k, v in own.items() if k not in rest}, "files": sorted(files)}


def next_metadata(
    old: Mapping[str, Any], given: Mapping[str, Any], *, now: str, files: Sequence[str]
) -> dict[str, Any]:
    """``metadata.json`` after an update: one version on, tags and unknown keys kept; a key that is None goes."""
    own = _own(given)
    kept = {key: value for key, value in old.items() if own.get(key, value) is not None or key in ("last_used", "tags")}
    new = {**kept, **{key: value for key, value in own.items() if value is not None}}
    return {**new, "updated_at": now, "version": version_number(old.get("version")) + 1, "files": sorted(files)}


def version_number(version: object) -> int:
    """The number of a version in either form, ``3`` or ``"v3"``; 0 for anything else."""
    if isinstance(version, bool):
        return 0
    if isinstance(version, int):
        return max(version, 0)
    digits = re.fullmatch(r"v?(\d{1,9})", version.strip()) if isinstance(version, str) else None
    return int(digits[1]) if digits else 0


def backups_to_drop(found: Sequence[str], keep: int = KEEP_BACKUPS) -> list[str]:
    """Names of the oldest ``v{n}`` folders beyond the last ``keep``."""
    versions = sorted((name for name in found if re.fullmatch(r"v\d{1,9}", name)), key=version_number)
    return versions[: max(len(versions) - keep, 0)]


def status(metadata: Mapping[str, Any]) -> str:
    """active, draft or deprecated; a missing one is active, a strange one draft."""
    given = metadata.get("status", "active")
    return given if given in _STATES else "draft"


def description(metadata: Mapping[str, Any], definition: str) -> str:
    """One line about an asset, from its metadata or the first line of its definition that says something."""
    given = metadata.get("description") or metadata.get("description_short")
    if isinstance(given, str) and given.strip():
        return cut(" ".join(clean(given).split()), MAX_DESCRIPTION)
    lines = (line.lstrip("#> -*").strip() for line in clean(definition).splitlines())
    return cut(next((line for line in lines if line), ""), MAX_DESCRIPTION)


def check_status(value: object) -> None:
    """Raise InvalidInput for a status that does not exist."""
    if value not in _STATES:
        raise InvalidInput(f"资产状态只能是 {'、'.join(_STATES)}")


def _file_name(asset_type: str, name: object) -> str:
    if not isinstance(name, str):
        raise InvalidAssetError("资产的文件名必须是文字")
    try:
        path = layout.relative(name)
        for part in path.parts:
            names.component(part, what="资产文件")
    except InvalidInput as error:
        raise InvalidAssetError(f"资产文件名 {shorten(name)} 不可用，请用资产内的相对路径") from error
    ours = {names.fold(one) for one in (METADATA, SCHEMA, DEFINITIONS[asset_type])}
    if names.fold(str(path)) in ours or names.fold(path.parts[0]) == BACKUP or len(path.parts) > 8:
        raise InvalidAssetError(f"资产文件名 {shorten(name)} 是保留的名字，请改名")
    return str(path)


def _own(given: Mapping[str, Any]) -> dict[str, Any]:
    """The author's own metadata, as JSON; what we keep ourselves is left out."""
    try:
        plain = json.loads(json.dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidAssetError("资产的元数据里有不能写成 JSON 的值，请检查") from error
    if plain.get("status") is not None:
        check_status(plain["status"])
    return {key: value for key, value in plain.items() if key not in _KEPT}


def _first_version(given: Mapping[str, Any]) -> Any:
    version = given.get("version", 1)
    return version if version_number(version) else 1


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
