"""Assets on the disk: whole or not at all when they are made, the old version kept when they change. Blocks."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, cast

from amrita_plugin_memory.amos.errors import AssetExistsError, AssetNotFoundError
from amrita_plugin_memory.amos.ground import FileRoot, layout, uris
from amrita_plugin_memory.amos.ground.formats import dump_json
from amrita_plugin_memory.kernel.errors import InvalidName
from amrita_plugin_memory.kernel.scope import Scope

from . import rules
from .rules import AssetDraft, AssetUpdate


@dataclass(frozen=True, slots=True)
class Asset:
    """Where an asset stands: its owner's folder, its type and name."""

    owner: PurePosixPath
    type: str
    name: str

    @property
    def folder(self) -> PurePosixPath:
        """Its folder."""
        return layout.asset_dir(self.owner, self.type, self.name)

    @property
    def definition(self) -> PurePosixPath:
        """The file that describes it, under which the index knows it."""
        return self.folder / rules.DEFINITIONS[self.type]

    @property
    def uri(self) -> str:
        """Its short address, which a scope resolves to its own asset before the shared one."""
        return f"{uris.SCHEME}assets/{self.type}/{self.name}"

    @property
    def is_shared(self) -> bool:
        """True when it belongs to everybody."""
        return self.owner == layout.SHARED


@dataclass(frozen=True, slots=True)
class AssetStore:
    """Assets below one file root."""

    files: FileRoot

    def at(self, owner: PurePosixPath, asset_type: str, name: str) -> Asset:
        """The place of an asset, whether or not it is there.

        Raises:
            InvalidAssetError: an unknown type.
            InvalidName: an unusable name.

        """
        return Asset(owner, rules.check_type(asset_type), rules.check_name(name))

    def find(self, scope: Scope, asset_type: str, name: str) -> Asset:
        """The asset a scope means by a name: the user's own, else the shared one.

        Raises:
            AssetNotFoundError: neither is there.

        """
        for owner in layout.owners(scope):
            asset = self.at(owner, asset_type, name)
            if self.exists(asset):
                return asset
        raise AssetNotFoundError(f"没有名为 {name} 的{_WORDS[asset_type]}，请先用 list_assets 查看")

    def exists(self, asset: Asset) -> bool:
        """True when it is there."""
        return self.files.exists(asset.definition) or self.files.exists(asset.folder / rules.METADATA)

    def all(self, scope: Scope, asset_type: str | None = None) -> list[Asset]:
        """The user's assets and the shared ones that no own one hides, by type and name."""
        found: dict[tuple[str, str], Asset] = {}
        types = rules.ASSET_TYPES if asset_type is None else (rules.check_type(asset_type),)
        for owner in reversed(layout.owners(scope)):
            for kind in types:
                for asset in self._of(owner, kind):
                    found[kind, asset.name] = asset
        return [found[key] for key in sorted(found, key=lambda key: (rules.ASSET_TYPES.index(key[0]), key[1]))]

    # -- reading --------------------------------------------------------------------------------------------------

    def read_definition(self, asset: Asset) -> str:
        """Its definition; "" when the file is missing."""
        return self.files.read_text(asset.definition) or ""

    def read_metadata(self, asset: Asset) -> dict[str, Any]:
        """Its metadata; empty when the file is missing.

        Raises:
            Corrupt: the file is there and cannot be read.

        """
        return self.files.read_object(asset.folder / rules.METADATA) or {}

    def read_schema(self, asset: Asset) -> dict[str, Any] | None:
        """The schema of its parameters: ``schema.json``, else what older roots keep in the metadata."""
        schema = self.files.read_object(asset.folder / rules.SCHEMA)
        if schema is None:
            kept = self.read_metadata(asset).get("schema")
            return cast("dict[str, Any]", kept) if isinstance(kept, dict) else None
        return schema

    def read_file(self, asset: Asset, name: str) -> str:
        """One of its files.

        Raises:
            InvalidAssetError: a name that leaves the asset.
            AssetNotFoundError: no such file.

        """
        text = self.files.read_text(asset.folder / self._readable(asset, name))
        if text is None:
            raise AssetNotFoundError(f"{_WORDS[asset.type]} {asset.name} 没有文件 {name[:60]}")
        return text

    def file_names(self, asset: Asset) -> list[str]:
        """Its code files, sorted; neither the definition, metadata and schema nor backups."""
        fixed = {rules.METADATA, rules.SCHEMA, rules.DEFINITIONS[asset.type]}
        found = (str(path.relative_to(asset.folder)) for path in self.files.walk(asset.folder))
        return sorted(name for name in found if name not in fixed and not name.startswith(f"{rules.BACKUP}/"))

    def backups(self, asset: Asset) -> list[str]:
        """Old versions that are kept, oldest first."""
        return sorted(self.files.dirs(asset.folder / rules.BACKUP), key=rules.version_number)

    # -- writing --------------------------------------------------------------------------------------------------

    def create(
        self, asset: Asset, draft: AssetDraft, *, author: str, now: str, replace: bool = False
    ) -> dict[str, Any]:
        """Make a new asset, whole or not at all; its metadata.

        Raises:
            AssetExistsError: the name is taken and ``replace`` is not given; with it, the old one becomes a backup.
            InvalidAssetError: it cannot be stored as given.

        """
        files = rules.check_files(asset.type, draft.code_files)
        parts = self._parts(asset, rules.check_definition(asset.type, draft.definition), draft.schema)
        metadata = rules.first_metadata(draft.metadata, author=author, now=now, files=list(files))
        with self.files.lock(asset.folder):
            if self.exists(asset):
                if not replace:
                    raise AssetExistsError(f"{_WORDS[asset.type]} {asset.name} 已经存在，请改名或用 update 修改")
                update = AssetUpdate(draft.definition, self._exactly(asset, files), draft.metadata, draft.schema)
                return self._changed(asset, update, now)
            stage = asset.folder.with_name(f".new-{secrets.token_hex(6)}")
            try:
                self._write(stage, {**parts, **{k: v for k, v in files.items() if v is not None}})
                self.files.write_json(stage / rules.METADATA, metadata)
                self.files.delete_tree(asset.folder)  # what a torn older write left, it has no definition
                self.files.move(stage, asset.folder)
            except BaseException:
                self.files.delete_tree(stage)
                raise
        return metadata

    def update(self, asset: Asset, update: AssetUpdate, *, now: str) -> dict[str, Any]:
        """Change an asset: the old version becomes a backup, the version goes up; its new metadata.

        Raises:
            AssetNotFoundError: it is not there.
            InvalidAssetError: it cannot be stored as given.

        """
        rules.check_files(asset.type, update.code_files)
        with self.files.lock(asset.folder):
            if not self.exists(asset):
                raise AssetNotFoundError(f"没有名为 {asset.name} 的{_WORDS[asset.type]}，请先用 list_assets 查看")
            return self._changed(asset, update, now)

    def mark(self, asset: Asset, status: str, *, now: str) -> dict[str, Any]:
        """Set the status of an asset without a new version."""
        with self.files.lock(asset.folder):
            metadata = {**self.read_metadata(asset), "status": status, "updated_at": now}
            self.files.write_json(asset.folder / rules.METADATA, metadata)
        return metadata

    def delete(self, asset: Asset) -> bool:
        """Remove an asset with its backups; False when it was not there."""
        with self.files.lock(asset.folder):
            return self.files.delete_tree(asset.folder)

    def _changed(self, asset: Asset, update: AssetUpdate, now: str) -> dict[str, Any]:
        old = self.read_metadata(asset)
        definition = None if update.definition is None else rules.check_definition(asset.type, update.definition)
        parts = self._parts(asset, definition, update.schema)
        gone = [name for name, text in update.code_files.items() if text is None]
        kept = {name for name in self.file_names(asset) if name not in gone}
        metadata = rules.next_metadata(old, update.metadata, now=now, files=[*{*kept, *self._new(update)}])
        self._back_up(asset, rules.version_number(old.get("version")))
        for name in gone:
            self.files.delete(asset.folder / name)
        self._write(asset.folder, {**parts, **{k: v for k, v in update.code_files.items() if v is not None}})
        self.files.write_json(asset.folder / rules.METADATA, metadata)
        return metadata

    def _back_up(self, asset: Asset, version: int) -> None:
        target = asset.folder / rules.BACKUP / f"v{version}"
        self.files.delete_tree(target)
        for path in list(self.files.walk(asset.folder)):
            inner = path.relative_to(asset.folder)
            if inner.parts[0] != rules.BACKUP:
                self.files.write(target / inner, self.files.read(path) or b"")
        for name in rules.backups_to_drop(self.files.dirs(asset.folder / rules.BACKUP)):
            self.files.delete_tree(asset.folder / rules.BACKUP / name)

    def _parts(self, asset: Asset, definition: str | None, schema: Mapping[str, Any] | None) -> dict[str, str]:
        parts = {} if definition is None else {rules.DEFINITIONS[asset.type]: definition}
        if schema is not None:
            parts[rules.SCHEMA] = self._json(rules.check_schema(schema))
        return parts

    def _exactly(self, asset: Asset, files: Mapping[str, str | None]) -> dict[str, str | None]:
        return {**dict.fromkeys(self.file_names(asset)), **files}

    def _of(self, owner: PurePosixPath, kind: str) -> Iterator[Asset]:
        for name in self.files.dirs(owner / "assets" / layout.ASSET_DIRS[kind]):
            try:
                asset = self.at(owner, kind, name)
            except InvalidName:
                continue
            if self.exists(asset):
                yield asset

    def _readable(self, asset: Asset, name: str) -> PurePosixPath:
        fixed = (rules.METADATA, rules.SCHEMA, rules.DEFINITIONS[asset.type])
        if name not in fixed:
            rules.check_files(asset.type, {name: None})
        return layout.relative(name)

    def _write(self, folder: PurePosixPath, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            self.files.write_text(folder / name, text)

    @staticmethod
    def _json(value: Mapping[str, Any]) -> str:
        return dump_json(value).decode()

    @staticmethod
    def _new(update: AssetUpdate) -> list[str]:
        return [name for name, text in update.code_files.items() if text is not None]


_WORDS: Final = {"tool": "工具", "page": "页面", "app": "应用"}
