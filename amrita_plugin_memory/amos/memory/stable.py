"""What stands at the beginning of every prompt, and whose versions move when a part of it is written.

The prefix of a scope is its soul (agent > user > shared, the first that says anything), its user's profile and its
session's summary. A write bumps exactly the scopes whose prefix reads differently afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from amrita_plugin_memory.amos.ground import FileRoot, layout, names
from amrita_plugin_memory.kernel.scope import Scope
from amrita_plugin_memory.kernel.text import clean

from . import versions

SUMMARY_HEAD: Final = "[会话摘要]\n"


@dataclass(frozen=True, slots=True)
class StableText:
    """Soul, profile and summary below one file root."""

    files: FileRoot

    def soul(self, scope: Scope) -> str:
        """The soul a scope speaks with; "" when there is none on any level."""
        for path in layout.soul_chain(scope):
            text = self.files.read_text(path)
            if text and text.strip():
                return text
        return ""

    def profile(self, actor: str) -> str:
        """The profile of a user; "" when there is none."""
        return self.files.read_text(layout.profile(actor)) or ""

    def summary(self, scope: Scope) -> str:
        """The summary of a session; "" when there is none."""
        return self.files.read_text(layout.summary(scope)) or ""

    def prefix(self, scope: Scope) -> str:
        """The text of the system message that begins every prompt of the scope; "" when nothing is stored."""
        summary = _shown(self.summary(scope))
        soul, profile = _shown(self.soul(scope)), _shown(self.profile(scope.actor))
        parts = [soul, profile, SUMMARY_HEAD + summary if summary.strip() else ""]
        return "\n\n".join(part for part in parts if part)

    def write_soul(self, owner: PurePosixPath, text: str) -> bool:
        """Replace the soul of ``shared``, a user or an agent; True when it changed."""
        path = layout.soul(owner)
        with self.files.lock(path):
            if self.files.read_text(path) == text:
                return False
            spoken = {scope: _shown(self.soul(scope)) for scope in self._readers(owner)}
            self.files.write_text(path, text)
            versions.bump(self.files, [scope for scope in spoken if _shown(self.soul(scope)) != spoken[scope]])
        return True

    def write_profile(self, actor: str, change: Callable[[str], str]) -> bool:
        """Replace a profile by ``change(profile)``, read and written under the lock; True when it changed."""
        path = layout.profile(actor)
        with self.files.lock(path):
            before = self.profile(actor)
            after = change(before)
            if after == before:
                return False
            self.files.write_text(path, after)
            if _shown(after) != _shown(before):
                versions.bump(self.files, self._readers(layout.user_dir(actor)))
        return True

    def write_summary(self, scope: Scope, change: Callable[[str], str]) -> bool:
        """Replace a summary by ``change(summary)``; True when it changed. Locked with the session's turns."""
        with self.files.lock(layout.messages(scope)):
            before = self.summary(scope)
            after = change(before)
            if after == before and self.files.exists(layout.summary(scope)):
                return False
            self.files.write_text(layout.summary(scope), after)
        self.summary_changed(scope, before, after)
        return after != before

    def summary_changed(self, scope: Scope, before: str, after: str) -> None:
        """Bump the scope when a summary that was written reads differently in the prompt."""
        if _shown(before) != _shown(after):
            versions.bump(self.files, [scope])

    def _readers(self, owner: PurePosixPath) -> Iterator[Scope]:
        """Scopes whose prefix may hold a text of this owner folder."""
        if owner == layout.SHARED:
            for actor in filter(names.is_component, self.files.dirs(layout.USERS)):
                yield from self._readers(layout.user_dir(actor))
        elif len(owner.parts) == 2:
            yield Scope(owner.parts[1])
            for agent in filter(names.is_component, self.files.dirs(owner / "agents")):
                yield Scope(owner.parts[1], agent)
        else:
            yield Scope(owner.parts[1], owner.parts[3])


def _shown(text: str) -> str:
    """A stored text as it stands in a prompt."""
    return clean(text).strip("\n")
