"""The handle: every verb of a root for one actor, agent and session."""

from __future__ import annotations

from amrita_plugin_memory.amos.ground import layout

from .library import LibraryVerbs
from .persona import PersonaVerbs
from .reading import ReadVerbs
from .services import ServiceVerbs
from .talk import TalkVerbs
from .workshop import InsightVerbs, ToolVerbs


class Handle(TalkVerbs, PersonaVerbs, LibraryVerbs, ReadVerbs, ServiceVerbs, ToolVerbs, InsightVerbs):
    """All verbs for one scope. Immutable: handles of different users may be used at the same time."""

    __slots__ = ()

    def at(self, actor: str | None = None, agent: str | None = None, session_id: str | None = None) -> Handle:
        """A handle of the same root for another actor, agent or session; without an actor, for the same one.

        ``agent=None`` means no agent, as in ``set_context``; ``session_id=None`` keeps the session.

        Raises:
            InvalidName: one of them cannot be a path component.

        """
        who = self.scope.actor if actor is None else actor
        return Handle(self.root, layout.make_scope(who, agent, session_id or self.scope.session))
