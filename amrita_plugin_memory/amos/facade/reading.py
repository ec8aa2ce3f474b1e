"""The verb that reads by address: one's own, what is shared, and what others have granted."""

from __future__ import annotations

from pathlib import PurePosixPath

from amrita_plugin_memory.amos.assets.rules import DEFINITIONS
from amrita_plugin_memory.amos.ground import layout, uris

from .verbs import Verbs


class ReadVerbs(Verbs):
    """Reading by ``amos://`` address."""

    __slots__ = ()

    async def read(self, uri: str) -> str | None:
        """The text of the file an ``amos://`` address names, whoever owns it; None when there is none.

        A short address (``amos://knowledge/…``) means the user's own before the shared one. A session's messages are
        their JSON lines, an asset is its definition and is granted as its folder. The access list is asked first, so
        that somebody without a grant does not learn what is there.

        Raises:
            ACLDeniedError: the owner has not granted it.
            MemoryURIError: not an address of this protocol.
            InvalidName: a part that cannot be a path component.

        """
        for path in uris.candidates(uri, self.scope):
            text = await self._do("read", path, self.root.files.read_text, _file(path))
            if text is not None:
                return text
        return None


def _file(path: PurePosixPath) -> PurePosixPath:
    """The file to read for what an address names: assets are folders and are read by their definition."""
    owned = path.parts[1 if path.parts[0] == "shared" else 2 :]
    if owned[:1] != ("assets",):
        return path
    return path / next(DEFINITIONS[kind] for kind, folder in layout.ASSET_DIRS.items() if folder == owned[1])
