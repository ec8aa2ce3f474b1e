"""Verbs of a conversation: prompt, turns, compression, summary."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import PurePosixPath
from typing import Any

from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.amos.prompt import Retrieve
from amrita_plugin_memory.amos.search import RetrieveOptions, render
from amrita_plugin_memory.amos.types import CompressResult, PromptMessage
from amrita_plugin_memory.kernel.clock import iso_seconds
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, InvalidInput, NotFound
from amrita_plugin_memory.kernel.scope import Scope

from .verbs import Verbs, checked, with_session

log = logging.getLogger("amrita_memory.amos")


class TalkVerbs(Verbs):
    """Prompt, turns, compression and summary of sessions."""

    __slots__ = ()

    async def build_stable_prefix(self, session_id: str | None = None) -> list[PromptMessage]:
        """The system message every prompt of a session begins with; empty when nothing of it is stored or allowed."""
        scope = self._session(session_id)
        await self._may("read", layout.session_dir(scope))
        return await self.root.prompt.prefix(scope)

    async def build_messages(
        self,
        session_id: str | None = None,
        user_input: str | None = None,
        retrieve: bool = True,
        retrieve_options: RetrieveOptions | None = None,
    ) -> list[PromptMessage]:
        """The prompt for what the user says now: prefix, every uncompressed turn, what was found, the input.

        ``build_messages(input)`` means the handle's session, ``build_messages(session_id, input)`` another one. The
        list goes into a chat request as it is. When retrieval fails the prompt comes without it. The session must be
        open to reading; what else the access list denies is left out.
        """
        sid, said = with_session("build_messages(session_id, user_input)", session_id, user_input)
        scope = self._session(sid)
        await self._may("read", layout.session_dir(scope))
        options = retrieve_options or RetrieveOptions()
        return await self.root.prompt.build(scope, str(said), self._finder(options) if retrieve else None)

    async def add_turn(
        self, session_id: str | None = None, user_msg: str | None = None, assistant_msg: str | None = None
    ) -> str:
        """Store one turn, ``add_turn(session_id, user, assistant)`` or ``add_turn(user, assistant)``; its id.

        The turn is on the disk when this returns. A session that has grown too long is compressed on the way; when
        that cannot be done now, it is done later, and the caller sees no error.

        Raises:
            LimitReached: a message is too long.

        """
        usage = "add_turn(session_id, user_msg, assistant_msg)"
        sid, said, answer = with_session(usage, session_id, user_msg, assistant_msg)
        scope = self._session(sid)
        now = iso_seconds(self.root.options.clock.now())
        added = await self._do(
            "write", layout.session_dir(scope), self.root.sessions.add, scope, str(said), str(answer), now
        )
        self.root.changed(layout.messages(scope))
        await self._emit("turn_added", {"sessionId": scope.session, "turnId": added.id})
        result = await self.root.compression.after_turn(scope, added.turns)
        if result is not None:
            await self._compressed(scope, result)
        return added.id

    async def get_recent_messages(self, session_id: str | None = None, limit: int = 20) -> list[dict[str, Any]]:
        """The last ``limit`` messages (not turns) as they are stored, each with the id of its turn."""
        scope = self._session(session_id)
        return await self._do("read", layout.session_dir(scope), self.root.sessions.recent, scope, limit)

    async def delete_turn(self, turn_id: str, session_id: str | None = None) -> None:
        """Take one turn out of a session or its archive.

        Raises:
            NotFound: no turn has this id.

        """
        scope = self._session(session_id)
        await self._found(
            scope, await self._do("write", layout.session_dir(scope), self.root.sessions.delete, scope, turn_id)
        )
        await self._emit("turnDeleted", {"sessionId": scope.session, "turnId": turn_id})

    async def edit_turn(
        self, turn_id: str, *, user: str | None = None, assistant: str | None = None, session_id: str | None = None
    ) -> None:
        """Replace what was said in one turn of a session or its archive.

        Raises:
            NotFound: no turn has this id.

        """
        scope = self._session(session_id)
        await self._found(
            scope,
            await self._do(
                "write", layout.session_dir(scope), self.root.sessions.edit, scope, turn_id, user, assistant
            ),
        )
        await self._emit("turnEdited", {"sessionId": scope.session, "turnId": turn_id})

    async def list_sessions(self) -> list[str]:
        """Sessions of the handle's agent, or of its user when it has none; sorted."""
        return await self._do(
            "read", layout.home_dir(self.scope) / "sessions", self.root.sessions.names, layout.home_dir(self.scope)
        )

    async def list_archives(self, session_id: str | None = None) -> list[str]:
        """Archive files of a session, oldest day first, relative to the root."""
        scope = self._session(session_id)
        return await self._do("read", layout.session_dir(scope), self.root.sessions.archives, scope)

    async def delete_session(self, session_id: str) -> bool:
        """Delete a session with its summary and archive; False when there was none."""
        scope = self._session(session_id)
        gone = await self._do("write", layout.session_dir(scope), self._forget, scope)
        if gone:
            await self._emit("sessionDeleted", {"sessionId": scope.session})
        return gone

    async def compress_session(
        self, *args: str | bool, session_id: str | None = None, force: bool = False
    ) -> CompressResult:
        """Compress a session now: ``()``, ``(force)``, ``(session_id)`` or ``(session_id, force)``.

        Without ``force`` only when it holds more than ``max_history_turns``.

        Raises:
            LLMUnavailableError: no summariser, or it does not answer in time.
            CompressionError: the summariser failed or answered nothing; every turn is still there.

        """
        for arg in args[:2]:
            session_id, force = (session_id, arg) if isinstance(arg, bool) else (arg, force)
        scope = self._session(session_id)
        await self._may("write", layout.session_dir(scope))
        result = await self.root.compression.run(scope, force=force)
        if result.compressed:
            await self._compressed(scope, result)
        return result

    async def get_summary(self, session_id: str | None = None) -> str:
        """The summary of a session; "" when there is none."""
        scope = self._session(session_id)
        return await self._do("read", layout.summary(scope), self.root.stable.summary, scope)

    async def replace_summary(self, session_id: str | None = None, content: str | None = None) -> None:
        """Write a summary, ``(content)`` or ``(session_id, content)``; cut at ``summary_max_chars``."""
        sid, given = with_session("replace_summary(session_id, content)", session_id, content)
        scope, text = self._session(sid), checked(given, "摘要")
        limit = self.root.options.summary_max_chars
        await self._write_summary(scope, lambda _: text[:limit])
        await self._emit("summaryReplaced", {"sessionId": scope.session})

    async def append_summary_point(self, point: str, session_id: str | None = None) -> None:
        """Add one line to a summary; when it would grow too long, its oldest lines go."""
        scope, limit = self._session(session_id), self.root.options.summary_max_chars
        if not checked(point, "摘要要点").strip():
            raise InvalidInput("摘要要点不能为空")
        await self._write_summary(scope, lambda old: _bounded(f"{old}\n{point}" if old else point, limit))
        await self._emit("summaryReplaced", {"sessionId": scope.session})
        await self._emit("summaryPointAppended", {"sessionId": scope.session, "point": point})

    def _finder(self, options: RetrieveOptions) -> Retrieve:
        async def find(scope: Scope, said: str) -> str | None:
            try:
                found = await self._hits(
                    lambda k: self.root.search.retrieve(scope, said, replace(options, top_k=k)), options.top_k
                )
                return render(found, options.inject_mode)
            except (AmritaMemoryError, OSError) as error:
                log.warning("prompt without retrieval: %s", type(error).__name__)
                return None

        return find

    async def _compressed(self, scope: Scope, result: CompressResult) -> None:
        self.root.changed(layout.messages(scope), layout.summary(scope))
        await self._emit("compressed", {"sessionId": scope.session, **asdict(result)})

    async def _found(self, scope: Scope, found: bool) -> None:
        if not found:
            raise NotFound("找不到这一轮对话，请先用 get_recent_messages 查看编号")
        archives = await asyncio.to_thread(self.root.sessions.archives, scope)
        self.root.changed(layout.messages(scope), *map(PurePosixPath, archives))

    def _forget(self, scope: Scope) -> bool:
        held, stable = [*self.root.files.walk(layout.session_dir(scope))], self.root.stable
        said = stable.summary(scope)
        try:
            return self.root.sessions.forget(scope)
        finally:  # a deletion that fails halfway has changed the prefix and the index all the same
            stable.summary_changed(scope, said, stable.summary(scope))
            for path in held:
                self.root.search.changed(path)

    async def _write_summary(self, scope: Scope, change: Callable[[str], str]) -> None:
        await self._do("write", layout.summary(scope), self.root.stable.write_summary, scope, change)
        self.root.changed(layout.summary(scope))


def _bounded(text: str, limit: int) -> str:
    """The newest lines of a text that fit into ``limit`` characters."""
    lines = text.split("\n")
    while len(lines) > 1 and len("\n".join(lines)) > limit:
        lines = lines[1:]
    return "\n".join(lines)[:limit]
