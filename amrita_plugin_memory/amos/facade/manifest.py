"""``version.txt`` and ``manifest.json`` of a root: read, checked, and written when they are not there. Blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from amrita_plugin_memory.amos.errors import ProtocolVersionError
from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.kernel.errors import Corrupt, shorten

PROTOCOL: Final = "2.0.0"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Who made a root and what it needs. Keys we do not know are kept in ``extra``."""

    amos_version: str = "2.0"
    name: str = "unnamed-system"
    description: str | None = None
    author: str = "system"
    model: str | None = None
    env_vars: tuple[str, ...] = ()
    required_capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    version: str | None = PROTOCOL
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Manifest:
        """A manifest from its JSON object; what is missing gets the protocol's default."""
        known = {f.name for f in fields(cls)} - {"extra"}
        given = {key: value for key, value in data.items() if key in known}
        names = given.get("env_vars")
        given["env_vars"] = tuple(map(str, names)) if isinstance(names, list) else ()  # pyright: ignore[reportUnknownArgumentType]
        return cls(**given, extra={key: value for key, value in data.items() if key not in known})

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, keys in the reference implementation's order."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "extra"}
        return {**named, "env_vars": list(self.env_vars), **self.extra}


def prepare(files: FileRoot) -> Manifest:
    """Check the version of a root, make what a new one lacks, and read its manifest.

    Raises:
        ProtocolVersionError: the root is of another version.
        Corrupt: ``manifest.json`` is no JSON object.

    """
    version = (files.read_text(layout.VERSION) or "").strip()
    if version not in ("", PROTOCOL):
        raise ProtocolVersionError(f"这个根目录的协议版本是 {shorten(version)}，这里只支持 {PROTOCOL}")
    for folder in layout.FOLDERS:
        files.make_dir(folder)
    if not version:
        files.write_text(layout.VERSION, PROTOCOL)
    if not files.exists(layout.CACHE_VERSION):
        files.write_json(layout.CACHE_VERSION, {})
    try:
        data = files.read_object(layout.MANIFEST)
    except Corrupt as error:
        raise Corrupt("manifest.json 已损坏，请用 amos doctor --fix 修复") from error
    if data is None:
        manifest = Manifest()
        files.write_json(layout.MANIFEST, manifest.to_dict())
        return manifest
    return Manifest.of(data)
