"""Verbs of assets: make, read, change, delete, list, run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from amrita_plugin_memory.amos.assets import Asset, AssetDraft, AssetExecutionResult, AssetStore, AssetUpdate, rules
from amrita_plugin_memory.amos.assets.runner import Executor
from amrita_plugin_memory.amos.facade.verbs import Verbs
from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.kernel.clock import iso_seconds
from amrita_plugin_memory.kernel.errors import InvalidInput


class AssetVerbs(Verbs):
    """Tools, pages and apps. A name means the user's own asset before the shared one; ``shared=True`` makes for all."""

    __slots__ = ()

    @property
    def asset_manager(self) -> AssetStore:
        """The assets of the root on the disk; it asks no access list."""
        return self.root.workshop.assets

    async def create_asset(
        self,
        asset_type: str,
        name: str,
        definition: str,
        *parts: Mapping[str, Any] | None,
        code_files: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
        shared: bool = False,
    ) -> str:
        """Make an asset, whole or not at all; its address. ``parts`` are code files and metadata, also by keyword.

        Raises:
            AssetExistsError: the name is taken.
            InvalidAssetError: it cannot be stored as given.

        """
        asset = self.root.workshop.assets.at(self._owner(shared), asset_type, name)
        await self._may("write", asset.folder)
        files, own = _parts(parts, code_files, metadata)
        draft = AssetDraft(definition, files, own, schema)
        made = await asyncio.to_thread(
            self.root.workshop.assets.create, asset, draft, author=self.scope.actor, now=self._now()
        )
        await self._index_asset(asset, definition, made)
        await self._emit("assetCreated", self._about(asset))
        return asset.uri

    async def update_asset(
        self,
        asset_type: str,
        name: str,
        definition: str | None = None,
        *parts: Mapping[str, Any] | None,
        code_files: Mapping[str, str | None] | None = None,
        metadata_updates: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> str:
        """Change an asset: its old version becomes a backup, its version goes up; its address.

        ``parts`` are code files and metadata updates, also by keyword.

        Raises:
            AssetNotFoundError: there is none.
            ACLDeniedError: it is a shared one, which only who may write there changes.

        """
        asset = await self._asset(asset_type, name, "write")
        files, own = _parts(parts, code_files, metadata_updates)
        update = AssetUpdate(definition, files, own, schema)
        await self._updated(asset, update)
        await self._emit("assetUpdated", self._about(asset))
        return asset.uri

    async def delete_asset(self, asset_type: str, name: str) -> bool:
        """Remove an asset with its backups; False when there was none."""
        store = self.root.workshop.assets
        own = store.at(self._home, asset_type, name)
        if not await asyncio.to_thread(store.exists, own):
            shared = store.at(layout.SHARED, asset_type, name)
            if not await asyncio.to_thread(store.exists, shared):
                return False
            own = shared
        await self._may("write", own.folder)
        gone = await asyncio.to_thread(store.delete, own)
        await asyncio.to_thread(self.root.index.drop, own.definition)
        self.root.changed(own.definition)
        await self._emit("assetDeleted", self._about(own))
        return gone

    async def get_asset_definition(self, asset_type: str, name: str) -> str:
        """The Markdown that describes an asset; an app's is its manifest."""
        asset = await self._asset(asset_type, name, "read")
        return await asyncio.to_thread(self.root.workshop.assets.read_definition, asset)

    async def get_asset_code(self, asset_type: str, name: str, filename: str = "code.py") -> str:
        """One file of an asset."""
        asset = await self._asset(asset_type, name, "read")
        return await asyncio.to_thread(self.root.workshop.assets.read_file, asset, filename)

    async def get_asset_metadata(self, asset_type: str, name: str) -> dict[str, Any]:
        """``metadata.json`` of an asset."""
        asset = await self._asset(asset_type, name, "read")
        return await asyncio.to_thread(self.root.workshop.assets.read_metadata, asset)

    async def list_assets(self, asset_type: str | None = None) -> list[str]:
        """Addresses of the user's and the shared assets, by type and name."""
        return [asset.uri for asset in await self._all(asset_type)]

    async def list_assets_detail(self, asset_type: str | None = None) -> list[dict[str, Any]]:
        """The same with description, status, version, tags, and whether they are shared."""
        return await asyncio.gather(*(asyncio.to_thread(self._detail, asset) for asset in await self._all(asset_type)))

    async def list_asset_files(self, asset_type: str, name: str) -> list[str]:
        """Code files of an asset, sorted."""
        asset = await self._asset(asset_type, name, "read")
        return await asyncio.to_thread(self.root.workshop.assets.file_names, asset)

    async def asset_exists(self, asset_type: str, name: str) -> bool:
        """True when the user or ``shared`` has one."""
        store = self.root.workshop.assets
        await self._may("read", self._home / "assets")
        places = [store.at(owner, asset_type, name) for owner in layout.owners(self.scope)]
        return any([await asyncio.to_thread(store.exists, place) for place in places])

    # -- running --------------------------------------------------------------------------------------------------

    def register_asset_executor(self, executor: Executor | None) -> None:
        """Let the program run tools itself, ``await executor(code, language, input)``, in place of the sandbox.

        Access list, status, approval, budget and time limit still hold; None brings the sandbox back.
        """
        self.root.workshop.runner.executor = executor

    async def execute_asset(
        self, asset_type: str, name: str, input: Mapping[str, Any] | None = None, timeout_ms: float | None = None
    ) -> AssetExecutionResult:
        """Run a tool; refusals and failures are part of the result. Needs the right to execute it."""
        result = await self.root.workshop.runner.attempt(self.scope, asset_type, name, input, timeout_ms=timeout_ms)
        await self._ran(name, result.ok)
        return result

    async def execute_tool(
        self, name: str, params: Mapping[str, Any] | None = None, *, timeout_ms: float | None = None
    ) -> Any:
        """Run a tool and give back its value.

        Raises:
            ACLDeniedError: no right to execute it, or its code awaits approval.
            AssetNotFoundError: there is none.
            InvalidAssetError: it is a draft or deprecated.
            SandboxError: what went wrong in the sandbox.

        """
        ok = False
        try:
            value = await self.root.workshop.runner.run(self.scope, name, params, timeout_ms=timeout_ms)
            ok = True
        finally:
            await self._ran(name, ok)
        return value

    async def approve_tool(self, name: str, *, actor: str | None = None) -> str:
        """Let a tool's code as it is now run where approval is required; the hash of the code.

        ``actor`` is whose tool it is, the handle's own without. Only who may write the system's lists may approve.
        """
        scope = self.scope if actor is None else layout.make_scope(actor)
        await self.root.guard.assert_permission("acl/approvals", "write", self.scope.actor)
        return await self.root.workshop.runner.approve(scope, name)

    async def _ran(self, name: str, ok: bool) -> None:
        await self._emit("tool_executed", {"toolName": str(name)[:64], "ok": ok})

    # -- shared with the verbs of tools -----------------------------------------------------------------------------

    def _now(self) -> str:
        return iso_seconds(self.root.options.clock.now())

    async def _asset(self, asset_type: str, name: str, action: Any) -> Asset:
        asset = await asyncio.to_thread(self.root.workshop.assets.find, self.scope, asset_type, name)
        await self._may(action, asset.folder)
        return asset

    async def _all(self, asset_type: str | None) -> list[Asset]:
        await self._may("read", self._home / "assets")
        return await asyncio.to_thread(self.root.workshop.assets.all, self.scope, asset_type)

    async def _updated(self, asset: Asset, update: AssetUpdate) -> dict[str, Any]:
        store = self.root.workshop.assets
        metadata = await asyncio.to_thread(store.update, asset, update, now=self._now())
        await self._index_asset(asset, await asyncio.to_thread(store.read_definition, asset), metadata)
        return metadata

    async def _index_asset(self, asset: Asset, text: str, metadata: Mapping[str, Any]) -> None:
        """Tell the indexes; tags of the metadata become tags of the file, and tags it has already stay."""

        def work() -> None:
            self.root.index.put(asset.definition, text)
            for tag in metadata.get("tags") or ():
                self.root.index.tag(asset.definition, str(tag)[:64])

        await asyncio.to_thread(work)
        self.root.changed(asset.definition)

    def _detail(self, asset: Asset) -> dict[str, Any]:
        store = self.root.workshop.assets
        metadata = store.read_metadata(asset)
        return {
            "uri": asset.uri,
            "asset_type": asset.type,
            "name": asset.name,
            "description": rules.description(metadata, store.read_definition(asset)),
            "status": rules.status(metadata),
            "version": metadata.get("version"),
            "tags": sorted({*map(str, metadata.get("tags") or ()), *self.root.index.tags_of(str(asset.definition))}),
            "shared": asset.is_shared,
        }

    @staticmethod
    def _about(asset: Asset) -> dict[str, Any]:
        return {"uri": asset.uri, "assetType": asset.type, "name": asset.name}


def _parts(given: tuple[Mapping[str, Any] | None, ...], *named: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Code files and metadata, from where the caller put them."""
    if len(given) > len(named):
        raise InvalidInput("参数太多，用法：(asset_type, name, definition, code_files, metadata)")
    placed = (*given, *(None for _ in named[len(given) :]))
    return [one if one is not None else place or {} for one, place in zip(named, placed, strict=True)]
