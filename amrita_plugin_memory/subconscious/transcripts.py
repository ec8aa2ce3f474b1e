"""Chat turns in the AMOS root: recorded one by one, read back by the cycle. A session is one day of one chat."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, tzinfo
from typing import Any, Final

from amrita_plugin_memory.amos import AMOS
from amrita_plugin_memory.amos.facade.handle import Handle
from amrita_plugin_memory.kernel.clock import Clock, parse_iso
from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.kernel.scope import UniId
from amrita_plugin_memory.kernel.text import clean, cut, is_blank

from .bench import Archived, Said

_log = logging.getLogger("amrita_memory.subconscious")
MAX_SAID: Final = 4_000  # characters of one side of a turn that are kept
MAX_DAYS: Final = 14  # sessions that are looked through for unread turns
MAX_TURNS: Final = 400

Summarise = Callable[[str, str], Awaitable[str]]  # (account, conversation) -> summary


class AmosTranscripts:
    """``users/{uni_id}/sessions/{date}/messages.jsonl``. Turn ids are ``date/id`` and grow with time."""

    def __init__(self, amos: AMOS, *, clock: Clock, zone: tzinfo, summarise: Summarise) -> None:
        self._amos = amos
        self._clock = clock
        self._zone = zone
        self._summarise = summarise

    async def record(self, chat: UniId, user: str, assistant: str) -> None:
        """Add one turn to today's session of a chat; blank turns are not kept."""
        said, answered = cut(clean(user), MAX_SAID), cut(clean(assistant), MAX_SAID)
        if is_blank(said) or is_blank(answered):
            return
        await self._handle(chat.key()).add_turn(self._today(), said, answered)

    async def since(self, account: str, cursor: str, limit: int) -> Sequence[Said]:
        """See Transcripts."""
        handle = self._handle(UniId.private(account).key())
        day, _, _ = cursor.partition("/")
        found: list[Said] = []
        for session in sorted(await handle.list_sessions())[-MAX_DAYS:]:
            if session >= day:
                found += _turns(session, await handle.get_recent_messages(session, MAX_TURNS * 2))
        places = [said.id for said in found]
        unread = found[places.index(cursor) + 1 :] if cursor in places else found
        return unread[-limit:]

    async def sessions(self, account: str, limit: int) -> Sequence[Archived]:
        """See Transcripts; a summary that was made is kept in the session's summary.md, one that failed is not."""
        handle = self._handle(UniId.private(account).key())
        past = [name for name in sorted(await handle.list_sessions(), reverse=True) if name < self._today()]
        return [await self._archived(handle, account, name) for name in past[:limit]]

    async def _archived(self, handle: Handle, account: str, session: str) -> Archived:
        turns = _turns(session, await handle.get_recent_messages(session, MAX_TURNS * 2))
        summary = await handle.get_summary(session)
        if not summary and turns:
            talk = "\n".join(f"用户：{cut(one.user, 300)}\n机器人：{cut(one.assistant, 300)}" for one in turns[-60:])
            try:
                summary = await self._summarise(account, talk)
                await handle.replace_summary(session, summary)
            except AmritaMemoryError as e:
                _log.info("[Subconscious] 会话 %s 的摘要这次没有写成：%s", session, e)
                summary = "（摘要暂缺）"
        return Archived(session, session, summary, len(turns))

    def _handle(self, actor: str) -> Handle:
        return self._amos.handle.at(actor)

    def _today(self) -> str:
        return self._clock.now().astimezone(self._zone).date().isoformat()


class AmosProfiles:
    """``users/{uni_id}/profile.md``."""

    def __init__(self, amos: AMOS) -> None:
        self._amos = amos

    async def read(self, account: str) -> str:
        """See Profiles."""
        return await self._amos.handle.at(UniId.private(account).key()).get_profile()

    async def replace(self, account: str, text: str) -> None:
        """See Profiles."""
        await self._amos.handle.at(UniId.private(account).key()).replace_profile(text)


def _turns(session: str, messages: Sequence[dict[str, Any]]) -> list[Said]:
    turns: dict[str, dict[str, Any]] = {}
    for message in messages:
        turn = turns.setdefault(str(message.get("id", "")), {})
        turn[str(message.get("role"))] = str(message.get("content") or "")
        turn.setdefault("ts", message.get("ts"))
    return [
        Said(f"{session}/{name}", _moment(turn.get("ts")), turn.get("user", ""), turn.get("assistant", ""))
        for name, turn in turns.items()
    ]


def _moment(value: object) -> datetime | None:
    return parse_iso(str(value or ""))
