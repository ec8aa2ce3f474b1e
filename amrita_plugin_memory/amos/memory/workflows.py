"""Workflows: reusable Markdown plans, the user's own before the shared ones. Every function blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.types import UpdateWorkflowMode, WorkflowUpdateOptions
from amrita_plugin_memory.kernel.errors import InvalidInput, NotFound, shorten
from amrita_plugin_memory.kernel.scope import Scope

from .sections import replace_section


@dataclass(frozen=True, slots=True)
class Workflows:
    """Workflows below one file root."""

    files: FileRoot

    def put(self, owner: PurePosixPath, name: str, content: str) -> PurePosixPath:
        """Write one whole; its path."""
        path = layout.workflow(owner, name)
        with self.files.lock(owner / "workflows"):
            self.files.write_text(path, content)
        return path

    def get(self, scope: Scope, name: str) -> str | None:
        """The text of one; None when neither the user nor ``shared`` has it."""
        found = (self.files.read_text(layout.workflow(owner, name)) for owner in layout.owners(scope))
        return next((text for text in found if text is not None), None)

    def names(self, scope: Scope) -> list[str]:
        """Names of the user's and the shared ones, merged and sorted."""
        found = (self.files.names(owner / "workflows") for owner in layout.owners(scope))
        return sorted({name.removesuffix(".md") for names in found for name in names if name.endswith(".md")})

    def update(
        self, owner: PurePosixPath, name: str, content: str, options: WorkflowUpdateOptions
    ) -> tuple[PurePosixPath, str]:
        """Change one that is there; its path and new text.

        Raises:
            InvalidInput: an unknown mode, or `PATCH` without a heading.
            NotFound: the owner has no such workflow, or it has no such heading.

        """
        mode = _mode(options)
        path = layout.workflow(owner, name)
        with self.files.lock(owner / "workflows"):
            text = self.files.read_text(path)
            if text is None:
                raise NotFound(f"没有名为 {shorten(name)} 的工作流，请先用 add_workflow 建立")
            text = _changed(text, content, mode, options.patch_heading or "")
            self.files.write_text(path, text)
        return path, text

    def delete(self, owner: PurePosixPath, name: str) -> PurePosixPath | None:
        """Remove one; its path, None when the owner has none of this name."""
        path = layout.workflow(owner, name)
        with self.files.lock(owner / "workflows"):
            return path if self.files.delete(path) else None


def _mode(options: WorkflowUpdateOptions) -> UpdateWorkflowMode:
    try:
        mode = UpdateWorkflowMode(options.mode)
    except ValueError as error:
        raise InvalidInput(f"更新方式 {shorten(options.mode)} 不存在，可用：overwrite append patch") from error
    if mode is UpdateWorkflowMode.PATCH and not (options.patch_heading or "").strip():
        raise InvalidInput("patch 方式要用 patch_heading 指明替换哪个小节")
    return mode


def _changed(text: str, content: str, mode: UpdateWorkflowMode, heading: str) -> str:
    if mode is UpdateWorkflowMode.OVERWRITE:
        return content
    if mode is UpdateWorkflowMode.APPEND:
        return f"{text}\n{content}" if text and not text.endswith("\n") else text + content
    patched = replace_section(text, heading, content)
    if patched is None:
        raise NotFound(f"工作流里没有标题 {shorten(heading)}，标题要写完整")
    return patched
