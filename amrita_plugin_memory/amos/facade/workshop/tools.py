"""Verbs of compiled tools, and the AI tool set."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from amrita_plugin_memory.amos.assets import Asset, AssetUpdate, rules
from amrita_plugin_memory.amos.compiler import CompileOptions, WorkflowCompiler
from amrita_plugin_memory.amos.errors import AssetNotFoundError, InvalidAssetError
from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.amos.sandbox import Sandbox
from amrita_plugin_memory.amos.toolset import MemoryTools
from amrita_plugin_memory.kernel.errors import InvalidInput

from .assets import AssetVerbs

if TYPE_CHECKING:
    from amrita_plugin_memory.amos.facade.handle import Handle


class ToolVerbs(AssetVerbs):
    """Tools that were compiled from workflows or made by hand: one list, one life."""

    __slots__ = ()

    @property
    def tools(self) -> MemoryTools:
        """The tools a model may use, for this handle."""
        return MemoryTools(cast("Handle", self), self.root.workshop.policy)

    @property
    def sandbox_executor(self) -> Sandbox:
        """The sandbox of the root; it asks no access list."""
        return self.root.workshop.sandbox

    @property
    def workflow_compiler(self) -> WorkflowCompiler:
        """The compiler of the root; it asks no access list."""
        return self.root.workshop.compiler

    async def compile_workflow_to_tool(
        self, workflow_name: str, new_tool_name: str, opts: CompileOptions | Mapping[str, Any] | None = None
    ) -> str:
        """Make a tool of a workflow, by the model or else by a template; its address.

        Code that does not parse is stored as a draft, which does not run; ``get_tool`` says why.

        Raises:
            NotFound: there is no such workflow.
            AssetExistsError: the tool is there and ``overwrite`` is not given.
            LLMUnavailableError: the model does not answer.

        """
        options = _options(opts)
        shop = self.root.workshop
        asset = shop.assets.at(self._home, "tool", new_tool_name)
        await self._may("read", layout.workflow(self._home, workflow_name))
        await self._may("write", asset.folder)
        text = await asyncio.to_thread(self.root.workflows.get, self.scope, workflow_name)
        made = await shop.compiler.compile(
            asset, (workflow_name, text), author=self.scope.actor, now=self._now(), options=options
        )
        await self._reindexed(asset)
        about = {"workflow": workflow_name, "tool": new_tool_name, "uri": asset.uri}
        await self._emit("toolCompiled", {**about, "status": "draft" if made.problem else "active"})
        return asset.uri

    async def list_tools(self, include_deprecated: bool = False) -> list[str]:
        """Names of tools, without those that were softly deleted unless asked for."""
        found = await self._all("tool")
        kept = [asset for asset in found if include_deprecated or await self._status(asset) != "deprecated"]
        return [asset.name for asset in kept]

    async def find_tools(
        self, query: str, top_k: int = 5, *, include_deprecated: bool = False, include_schema: bool = True
    ) -> list[dict[str, Any]]:
        """Tools that answer a query, best first: name, description, status, and the schema of their parameters."""
        hits = await self.root.search.search_assets(
            self.scope, query, "tool", top_k=top_k, include_deprecated=include_deprecated
        )
        await self._may("read", self._home / "assets")
        found: list[dict[str, Any]] = []
        for hit in hits:
            detail = await self._tool_detail(hit.path.split("/")[-2], include_schema)
            found += [detail] if detail else []
        return found

    async def get_tool(self, name: str) -> dict[str, Any] | None:
        """Name, definition, code, schema, metadata and kept versions of a tool; None when there is none."""
        try:
            asset = await self._asset("tool", name, "read")
        except AssetNotFoundError:
            return None
        return await asyncio.to_thread(self._whole, asset)

    async def get_tool_detail(self, name: str) -> dict[str, Any] | None:
        """Name, description, schema, code and status of a tool; None when there is none."""
        tool = await self.get_tool(name)
        if tool is None:
            return None
        described = rules.description(tool["metadata"], tool["definition"])
        state = rules.status(tool["metadata"])
        return {"name": name, "description": described, "schema": tool["schema"], "code": tool["code"], "status": state}

    async def update_tool(
        self,
        name: str,
        code: str | None = None,
        schema: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        metadata_updates: Mapping[str, Any] | None = None,
    ) -> str:
        """Change a tool: a new version, the old one kept. New code that parses makes a draft active again; its address.

        Raises:
            AssetNotFoundError: there is none.
            ToolCodeError: the new code does not parse; nothing was changed.

        """
        asset = await self._asset("tool", name, "write")
        own = {**(metadata or {}), **(metadata_updates or {})}
        if code is not None:
            await self.root.workshop.sandbox.check(code)
            if "status" not in own and await self._status(asset) == "draft":
                own |= {"status": "active", "compileError": None}
        if schema is not None:
            own["schema"] = rules.check_schema(schema)
        files = {} if code is None else {rules.CODE: code}
        await self._updated(asset, AssetUpdate(None, files, own, schema))
        await self._emit("toolUpdated", {"name": name})
        return asset.uri

    async def delete_tool(self, name: str, soft: bool = True) -> bool:
        """Take a tool out of use, or with ``soft=False`` off the disk; False when there was none."""
        try:
            asset = await self._asset("tool", name, "write")
        except AssetNotFoundError:
            return False
        if soft:
            await asyncio.to_thread(self.root.workshop.assets.mark, asset, "deprecated", now=self._now())
            self.root.changed(asset.definition)
        else:
            await self.delete_asset("tool", name)
        await self._emit("toolDeleted", {"name": name, "soft": soft})
        return True

    async def validate_code(self, code: str, language: str = "python") -> None:
        """Return when code can be parsed; none of it is run.

        Raises:
            ToolCodeError: with line and reason.
            InvalidAssetError: a language that is neither python nor javascript.

        """
        if language not in ("python", "javascript"):
            raise InvalidAssetError("只能检查 python 和 javascript 代码")
        await self.root.workshop.sandbox.check(code, language=language)

    async def _status(self, asset: Asset) -> str:
        return rules.status(await asyncio.to_thread(self.root.workshop.assets.read_metadata, asset))

    async def _reindexed(self, asset: Asset) -> None:
        store = self.root.workshop.assets
        text = await asyncio.to_thread(store.read_definition, asset)
        await self._index_asset(asset, text, await asyncio.to_thread(store.read_metadata, asset))

    async def _tool_detail(self, name: str, include_schema: bool) -> dict[str, Any] | None:
        detail = await self.get_tool_detail(name)
        if detail is None:
            return None
        return {key: value for key, value in detail.items() if key != "code" and (include_schema or key != "schema")}

    def _whole(self, asset: Asset) -> dict[str, Any]:
        store = self.root.workshop.assets
        code = store.read_file(asset, rules.CODE) if rules.CODE in store.file_names(asset) else ""
        return {
            "name": asset.name,
            "definition": store.read_definition(asset),
            "code": code,
            "schema": store.read_schema(asset),
            "metadata": store.read_metadata(asset),
            "backups": store.backups(asset),
        }


def _options(given: CompileOptions | Mapping[str, Any] | None) -> CompileOptions:
    if given is None or isinstance(given, CompileOptions):
        return given or CompileOptions()
    try:
        return CompileOptions(**dict(given))
    except TypeError as error:
        raise InvalidInput("编译选项只有 overwrite、description 和 version") from error
