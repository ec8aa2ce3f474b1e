"""Verbs of what stands at the head of every prompt: soul and profile, and the version of that head."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import PurePosixPath

from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.amos.memory import sections, versions
from amrita_plugin_memory.amos.types import CacheMetadata
from amrita_plugin_memory.kernel.errors import InvalidInput

from .verbs import Verbs, checked


class PersonaVerbs(Verbs):
    """Soul, profile and the cache version of a scope."""

    __slots__ = ()

    async def get_soul(self) -> str:
        """The soul the scope speaks with: its agent's, else its user's, else the shared one; "" when there is none."""
        return await self._do(
            "read", layout.soul(layout.home_dir(self.scope)), self.root.prompt.stable.soul, self.scope
        )

    async def replace_soul(self, content: str) -> None:
        """Write the soul of the handle's agent, or of its user when it has none."""
        await self._write_soul(layout.home_dir(self.scope), content)

    async def replace_shared_soul(self, content: str) -> None:
        """Write the soul of everybody who has none of their own; needs write access to ``shared``."""
        await self._write_soul(layout.SHARED, content)

    async def get_profile(self, key: str | None = None) -> str:
        """The profile, or with ``key`` the value of its first ``key: value`` line; "" when there is none."""
        text = await self._do("read", layout.profile(self.scope.actor), self.root.stable.profile, self.scope.actor)
        return text if key is None else sections.value_of(text, key)

    async def replace_profile(self, content: str) -> None:
        """Write the profile whole."""
        checked(content, "画像")
        await self._write_profile(lambda _: content)
        await self._emit("profileReplaced")

    async def update_profile(self, content: str) -> None:
        """Another name of `replace_profile`."""
        await self.replace_profile(content)

    async def append_profile(self, section: str, content: str) -> None:
        """Add ``content`` below the heading of a section, the newest first; a missing heading is made.

        Raises:
            InvalidInput: the section or the content is blank, or the section is more than one line.

        """
        checked(content, "画像内容")
        if not section.strip().strip("#").strip() or "\n" in section.strip() or not content.strip():
            raise InvalidInput("小节名要在一行以内，小节名和内容都不能为空")
        await self._write_profile(lambda old: checked(sections.add_to_section(old, section, content), "画像"))
        await self._emit("profileReplaced")
        await self._emit("profileAppended", {"section": section, "content": content})

    async def remove_profile_fact(self, keyword: str) -> int:
        """Take out every line that contains ``keyword``, headings apart; how many.

        Raises:
            InvalidInput: the keyword is blank.

        """
        if not keyword.strip():
            raise InvalidInput("关键词不能为空")
        removed: list[int] = []

        def change(old: str) -> str:
            text, count = sections.remove_facts(old, keyword)
            removed.append(count)
            return text

        await self._write_profile(change)
        if removed[-1]:
            await self._emit("profileReplaced")
            await self._emit("profileFactRemoved", {"count": removed[-1]})
        return removed[-1]

    async def cache_version(self) -> int:
        """How often the head of the scope's prompts has changed; 1 at first."""
        return await asyncio.to_thread(versions.get, self.root.files, self.scope)

    async def cache_metadata(self) -> CacheMetadata:
        """Key and version for an outside cache."""
        return CacheMetadata(f"amos:{versions.key(self.scope)}:stable_prefix", await self.cache_version())

    async def _write_soul(self, owner: PurePosixPath, content: str) -> None:
        await self._do("write", layout.soul(owner), self.root.stable.write_soul, owner, checked(content, "人格"))
        self.root.changed(layout.soul(owner))
        await self._emit("soulReplaced")

    async def _write_profile(self, change: Callable[[str], str]) -> None:
        path = layout.profile(self.scope.actor)
        await self._do("write", path, self.root.stable.write_profile, self.scope.actor, change)
        self.root.changed(path)
