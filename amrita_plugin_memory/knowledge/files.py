"""Entries in ``shared/knowledge/global/`` of an AMOS root, where any AMOS program finds them."""

from __future__ import annotations

from typing import Final

from amrita_plugin_memory.amos.facade.handle import Handle

DOMAIN: Final = "global"


class AmosEntryFiles:
    """``shared/knowledge/global/{kid}.md`` through a handle that may write for everybody."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def names(self) -> list[str]:
        """See EntryFiles."""
        return [name.partition("/")[2] for name in await self._handle.list_knowledge(DOMAIN)]

    async def read(self, kid: str) -> str | None:
        """See EntryFiles."""
        return await self._handle.get_knowledge(DOMAIN, kid)

    async def write(self, kid: str, text: str) -> None:
        """See EntryFiles."""
        await self._handle.add_knowledge(DOMAIN, kid, text, shared=True)

    async def delete(self, kid: str) -> bool:
        """See EntryFiles."""
        return await self._handle.delete_knowledge(DOMAIN, kid, shared=True)
