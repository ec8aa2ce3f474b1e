"""Tags of files. They stand in the index and nowhere else, so that they never touch a prompt. Every function blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from amrita_plugin_memory.amos.ground import FileRoot, layout, uris
from amrita_plugin_memory.kernel.errors import InvalidInput, NotFound, shorten
from amrita_plugin_memory.kernel.scope import Scope
from amrita_plugin_memory.kernel.text import clean

from .index import Index

MAX_TAG: Final = 64  # characters


@dataclass(frozen=True, slots=True)
class Tags:
    """Tags below one file root."""

    files: FileRoot
    index: Index

    def place(self, scope: Scope, target: str) -> PurePosixPath:
        """The file a relative path or ``amos://`` address names, among those the scope can see.

        Raises:
            InvalidInput: no usable path or address.
            NotFound: no such file, or another user's.

        """
        named = target.startswith(uris.SCHEME)
        paths = uris.candidates(target, scope) if named else (layout.relative(target),)
        seen = (path for path in paths if layout.is_visible(path, scope.actor))
        found = next((path for path in seen if self.files.exists(path)), None)
        if found is None:
            raise NotFound(f"找不到 {shorten(target, 80)}，请给出根目录内已有文件的相对路径")
        return found

    def add(self, path: PurePosixPath, tag: str) -> str:
        """Give a file a tag; the tag as it is stored.

        Raises:
            InvalidInput: no usable tag, or the index is switched off and nothing would be kept.

        """
        self._check_index()
        self.index.tag(path, tag := checked(tag))
        return tag

    def remove(self, path: PurePosixPath, tag: str) -> str:
        """Take a tag from a file; the tag as it was stored. Raises as `add` does."""
        self._check_index()
        self.index.untag(path, tag := checked(tag))
        return tag

    def paths(self, scope: Scope, tag: str) -> list[str]:
        """Files with this tag among those the scope can see, sorted."""
        return [path for path in self.index.tagged(tag) if layout.is_visible(PurePosixPath(path), scope.actor)]

    def _check_index(self) -> None:
        if not self.index.enabled:
            raise InvalidInput("索引已关闭，标签无处保存，请在 AMOS.create 里设 enable_index=True")


def checked(tag: object) -> str:
    """A tag in one line, without invisible signs, at most `MAX_TAG` characters."""
    text = clean(tag).strip() if isinstance(tag, str) else ""
    if not text or "\n" in text or len(text) > MAX_TAG:
        raise InvalidInput(f"标签要在一行以内，1 到 {MAX_TAG} 字")
    return text
