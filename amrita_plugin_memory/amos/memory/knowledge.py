"""Knowledge entries, ``domain/entity``, the user's own before the shared ones. Every function blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from amrita_plugin_memory.amos.ground import FileRoot, layout, names
from amrita_plugin_memory.kernel.scope import Scope


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Knowledge below one file root."""

    files: FileRoot

    def put(self, owner: PurePosixPath, domain: str, entity: str, content: str) -> PurePosixPath:
        """Write one whole; its path."""
        path = layout.knowledge(owner, domain, entity)
        self.files.write_text(path, content)
        return path

    def get(self, scope: Scope, domain: str, entity: str) -> str | None:
        """The text of one; None when neither the user nor ``shared`` has it."""
        found = (self.files.read_text(layout.knowledge(owner, domain, entity)) for owner in layout.owners(scope))
        return next((text for text in found if text is not None), None)

    def names(self, scope: Scope, domain: str | None = None) -> list[str]:
        """``domain/entity`` of the user's and the shared ones, merged and sorted; of one domain when it is given."""
        wanted = None if domain is None else names.component(domain, what="知识领域")
        found: set[str] = set()
        for owner in layout.owners(scope):
            folder = owner / "knowledge"
            for name in self.files.dirs(folder) if wanted is None else [wanted]:
                entities = self.files.names(folder / name)
                found.update(f"{name}/{entity[:-3]}" for entity in entities if entity.endswith(".md"))
        return sorted(found)

    def delete(self, owner: PurePosixPath, domain: str, entity: str) -> PurePosixPath | None:
        """Remove one entry, and its folder when that holds nothing else; its path, None when there was none."""
        path = layout.knowledge(owner, domain, entity)
        if not self.files.delete(path):
            return None
        self.files.delete_dir_if_empty(path.parent)
        return path
