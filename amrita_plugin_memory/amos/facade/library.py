"""Verbs of what a user collects: workflows, knowledge, tags, and the search over all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import PurePosixPath

from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.amos.search import SearchAllHit, SearchHit, SearchOptions
from amrita_plugin_memory.amos.types import UpdateWorkflowMode, WorkflowUpdateOptions

from .verbs import Verbs, checked


class LibraryVerbs(Verbs):
    """Workflows, knowledge, tags and search. ``shared=True`` writes for everybody and needs the right to."""

    __slots__ = ()

    # -- workflows ------------------------------------------------------------------------------------------------

    async def add_workflow(self, name: str, content: str, *, shared: bool = False) -> None:
        """Write a workflow whole, whether or not it was there."""
        owner, text = self._owner(shared), checked(content, "工作流内容")
        put = self.root.workflows.put
        await self._keep(layout.workflow(owner, name), lambda: (put(owner, name, text), text))
        await self._emit("workflowAdded", {"name": name, "content": content})

    async def get_workflow(self, name: str) -> str | None:
        """The text of a workflow, the user's own before the shared one; None when there is none."""
        return await self._do("read", layout.workflow(self._home, name), self.root.workflows.get, self.scope, name)

    async def list_workflows(self) -> list[str]:
        """Names of the user's and the shared workflows, sorted."""
        return await self._do("read", self._home / "workflows", self.root.workflows.names, self.scope)

    async def update_workflow(
        self,
        name: str,
        content: str,
        mode: UpdateWorkflowMode | WorkflowUpdateOptions | str = UpdateWorkflowMode.OVERWRITE,
        patch_heading: str | None = None,
        *,
        shared: bool = False,
    ) -> None:
        """Change a workflow that is there: overwrite, append, or patch the section named by ``patch_heading``.

        Raises:
            InvalidInput: an unknown mode, or patch without a heading.
            NotFound: there is no such workflow, or it has no such heading.

        """
        options = mode if isinstance(mode, WorkflowUpdateOptions) else WorkflowUpdateOptions(mode, patch_heading)
        owner = self._owner(shared)
        text, update = checked(content, "工作流内容"), self.root.workflows.update
        await self._keep(layout.workflow(owner, name), lambda: update(owner, name, text, options))
        await self._emit("workflowUpdated", {"name": name, "mode": str(options.mode)})

    async def delete_workflow(self, name: str, *, shared: bool = False) -> bool:
        """Remove a workflow; False when there was none."""
        owner, delete = self._owner(shared), self.root.workflows.delete
        if not await self._drop(layout.workflow(owner, name), lambda: delete(owner, name)):
            return False
        await self._emit("workflowDeleted", {"name": name})
        return True

    # -- knowledge ------------------------------------------------------------------------------------------------

    async def add_knowledge(self, domain: str, entity: str, content: str, *, shared: bool = False) -> None:
        """Write a knowledge entry whole, whether or not it was there."""
        await self._put_knowledge(domain, entity, content, shared)
        await self._emit("knowledgeAdded", {"domain": domain, "entity": entity})

    async def update_knowledge(self, domain: str, entity: str, content: str, *, shared: bool = False) -> None:
        """Write a knowledge entry whole; one that was only shared becomes the user's own."""
        await self._put_knowledge(domain, entity, content, shared)
        await self._emit("knowledgeUpdated", {"domain": domain, "entity": entity})

    async def get_knowledge(self, domain: str, entity: str) -> str | None:
        """The text of an entry, the user's own before the shared one; None when there is none."""
        return await self._do(
            "read", layout.knowledge(self._home, domain, entity), self.root.knowledge.get, self.scope, domain, entity
        )

    async def list_knowledge(self, domain: str | None = None) -> list[str]:
        """``domain/entity`` of the user's and the shared entries, sorted; of one domain when it is given."""
        return await self._do("read", self._home / "knowledge", self.root.knowledge.names, self.scope, domain)

    async def delete_knowledge(self, domain: str, entity: str, *, shared: bool = False) -> bool:
        """Remove an entry; False when there was none."""
        owner, delete = self._owner(shared), self.root.knowledge.delete
        if not await self._drop(layout.knowledge(owner, domain, entity), lambda: delete(owner, domain, entity)):
            return False
        await self._emit("knowledgeDeleted", {"domain": domain, "entity": entity})
        return True

    # -- tags -----------------------------------------------------------------------------------------------------

    async def add_tag(self, rel_path: str, tag: str) -> None:
        """Tag a file, named by its path in the root or its ``amos://`` address.

        Raises:
            InvalidInput: no usable tag, or ``enable_index`` is off, so that no tag could be kept.
            NotFound: no such file, or another user's.

        """
        path = await self._tagging(rel_path)
        tag = await asyncio.to_thread(self.root.tags.add, path, tag)
        self.root.changed(path)
        await self._emit("tagAdded", {"relPath": str(path), "tag": tag})

    async def remove_tag(self, rel_path: str, tag: str) -> None:
        """Take a tag from a file.

        Raises:
            InvalidInput: no usable tag, or ``enable_index`` is off.
            NotFound: no such file, or another user's.

        """
        path = await self._tagging(rel_path)
        tag = await asyncio.to_thread(self.root.tags.remove, path, tag)
        self.root.changed(path)
        await self._emit("tagRemoved", {"relPath": str(path), "tag": tag})

    async def list_by_tag(self, tag: str) -> list[str]:
        """Files with this tag among the user's and the shared ones, sorted."""
        return await self._do("read", self._home, self.root.tags.paths, self.scope, tag)

    # -- search ---------------------------------------------------------------------------------------------------

    async def search(self, query: str, top_k: int = 5, options: SearchOptions | None = None) -> list[SearchHit]:
        """Memory that answers ``query``, best first."""
        await self._may("read", self._home)
        return await self._hits(lambda k: self.root.search.search(self.scope, query, k, options), top_k)

    async def search_all(self, query: str, top_k: int = 5, options: SearchOptions | None = None) -> list[SearchAllHit]:
        """Memory, archives and assets that answer ``query``, best first."""
        await self._may("read", self._home)
        return await self._hits(lambda k: self.root.search.search_all(self.scope, query, k, options), top_k)

    async def search_assets(
        self, query: str, asset_type: str | None = None, top_k: int = 5, *, include_deprecated: bool = False
    ) -> list[SearchAllHit]:
        """Tools, pages and apps that answer ``query``, best first."""
        await self._may("read", self._home / "assets")
        search = self.root.search.search_assets
        return await self._hits(
            lambda k: search(self.scope, query, asset_type, top_k=k, include_deprecated=include_deprecated), top_k
        )

    async def reindex(self) -> int:
        """Make ``index.json`` and the search index anew from the files, tags kept; how many entries the former has."""
        entries = await self._do("write", self._home, self.root.index.rebuild)
        await self.root.search.reindex()
        return entries

    async def _put_knowledge(self, domain: str, entity: str, content: str, shared: bool) -> None:
        owner, text = self._owner(shared), checked(content, "知识内容")
        put = self.root.knowledge.put
        await self._keep(layout.knowledge(owner, domain, entity), lambda: (put(owner, domain, entity, text), text))

    async def _keep(self, path: PurePosixPath, write: Callable[[], tuple[PurePosixPath, str]]) -> None:
        """Write a file and index the text it holds now."""
        await self._do("write", path, lambda: self.root.index.put(*write()))
        self.root.changed(path)

    async def _tagging(self, rel_path: str) -> PurePosixPath:
        path = await asyncio.to_thread(self.root.tags.place, self.scope, rel_path)
        await self._may("write", path)
        return path

    async def _drop(self, path: PurePosixPath, delete: Callable[[], PurePosixPath | None]) -> bool:
        """Delete a file and forget it in the index; False when it was not there."""

        def work() -> bool:
            gone = delete()
            if gone is not None:
                self.root.index.drop(gone)
            return gone is not None

        found = await self._do("write", path, work)
        self.root.changed(path)
        return found
