"""A simulated OneBot v11 implementation: connects by reverse WebSocket, speaks as people and hears the bot."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import aiohttp

from amrita_plugin_memory.kernel.errors import Unavailable

Data: TypeAlias = dict[str, Any]

BOT_ID: Final = 90001
_RETRY_SECONDS: Final = 0.3


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is said: a private chat (``group`` is None), a group, or a temporary session out of a group."""

    user: int
    group: int | None = None
    role: str = "member"
    temporary: bool = False

    @property
    def is_group(self) -> bool:
        """True when the whole group reads along."""
        return self.group is not None and not self.temporary

    @property
    def address(self) -> str:
        """``group:20001`` or ``private:10001``: where the bot's answer arrives."""
        return f"group:{self.group}" if self.is_group else f"private:{self.user}"


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of the bot."""

    address: str
    text: str


def plain(message: object) -> str:
    """The readable text of a OneBot message: segments joined, nodes of a forwarded chat one per line."""
    if isinstance(message, str):
        return message
    segments: list[Data] = [message] if isinstance(message, dict) else list(message or [])  # pyright: ignore[reportUnknownVariableType, reportArgumentType, reportCallIssue]
    parts = [_segment_text(segment) for segment in segments]
    is_forward = bool(segments) and all(segment.get("type") == "node" for segment in segments)
    return ("\n" if is_forward else "").join(parts)


def _segment_text(segment: Mapping[str, Any]) -> str:
    data: Data = segment.get("data") or {}
    if segment.get("type") == "text":
        return str(data.get("text", ""))
    if segment.get("type") == "node":
        return plain(data.get("content"))
    # What points elsewhere is no content.
    return "" if segment.get("type") in ("reply", "at") else f"[{segment.get('type')}]"


@dataclass(slots=True)
class OneBotClient:
    """Speaks for any number of people; everything the bot sends is kept in ``heard``, in order."""

    url: str
    token: str
    nickname: str = "阿木"
    heard: list[Heard] = field(default_factory=list[Heard], init=False)
    calls: list[tuple[str, Data]] = field(default_factory=list[tuple[str, Data]], init=False)
    _ids: itertools.count[int] = field(
        default_factory=lambda: itertools.count(int(time.time()) % 10**6 * 100), init=False
    )
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _session: aiohttp.ClientSession | None = field(default=None, init=False)
    _socket: aiohttp.ClientWebSocketResponse | None = field(default=None, init=False)
    _reader: asyncio.Task[None] | None = field(default=None, init=False)
    _groups: dict[int, dict[int, str]] = field(default_factory=dict[int, dict[int, str]], init=False)
    _people: set[int] = field(default_factory=set[int], init=False)

    async def connect(self, *, within: float = 30) -> None:
        """Connect, trying again until the bot listens.

        Raises:
            Unavailable: nobody answered within ``within`` seconds.

        """
        headers = {
            "X-Self-ID": str(BOT_ID),
            "X-Client-Role": "Universal",
            "User-Agent": "amrita-memory-demo/OneBot11",
            "Authorization": f"Bearer {self.token}",
        }
        self._session = aiohttp.ClientSession(trust_env=False)
        try:
            async with asyncio.timeout(within):
                self._socket = await self._dial(headers)
        except TimeoutError as e:
            await self.close()
            raise Unavailable(f"{within:.0f} 秒内没能连上机器人的 OneBot 接口。请看机器人的日志。") from e
        self._reader = asyncio.create_task(self._read(self._socket))
        await self._emit({"post_type": "meta_event", "meta_event_type": "lifecycle", "sub_type": "connect"})

    async def _dial(self, headers: Mapping[str, str]) -> aiohttp.ClientWebSocketResponse:
        assert self._session is not None
        while True:
            try:
                return await self._session.ws_connect(self.url, headers=headers, max_msg_size=0)
            except (aiohttp.ClientError, OSError):
                await asyncio.sleep(_RETRY_SECONDS)

    async def close(self) -> None:
        """Hang up; what was heard stays."""
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        if self._socket is not None:
            await self._socket.close()
        if self._session is not None:
            await self._session.close()
        self._reader = self._socket = self._session = None

    async def say(self, place: Place, text: str, *, at: bool = False) -> None:
        """Send ``text`` as the person of ``place``; ``at`` mentions the bot first, as groups must."""
        self._people.add(place.user)
        segments: list[Data] = [{"type": "text", "data": {"text": text}}]
        if at:
            segments.insert(0, {"type": "at", "data": {"qq": str(BOT_ID)}})
        sender: Data = {"user_id": place.user, "nickname": self.nickname, "sex": "unknown", "age": 0}
        event: Data = {
            "post_type": "message",
            "message_type": "group" if place.is_group else "private",
            "sub_type": "normal" if place.is_group else ("group" if place.temporary else "friend"),
            "message_id": next(self._ids),
            "user_id": place.user,
            "message": segments,
            "raw_message": text,
            "font": 0,
            "sender": sender,
        }
        if place.group is not None:
            self._groups.setdefault(place.group, {})[place.user] = place.role
            event |= {"group_id": place.group, "anonymous": None}
            sender |= {"card": "", "role": place.role, "area": "", "level": "1", "title": ""}
        await self._emit(event)

    async def wait(self, address: str, *, since: int, within: float) -> Heard | None:
        """The first message to ``address`` after the ``since``-th heard one; None when none came in time."""
        try:
            async with asyncio.timeout(within):
                while True:
                    self._news.clear()
                    for message in self.heard[since:]:
                        if message.address == address:
                            return message
                    await self._news.wait()
        except TimeoutError:
            return None

    async def _emit(self, event: Data) -> None:
        if self._socket is None or self._socket.closed:
            raise Unavailable("和机器人的连接断了。请看机器人的日志。")
        await self._socket.send_json({"time": int(time.time()), "self_id": BOT_ID, **event})

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for frame in socket:
            if frame.type is not aiohttp.WSMsgType.TEXT:
                continue
            call: Data = frame.json()
            known, data = self._answer(str(call.get("action", "")), call.get("params") or {})
            reply = {
                "status": "ok" if known else "failed",
                "retcode": 0 if known else 1404,
                "data": data,
                "echo": call.get("echo"),
            }
            await socket.send_json(reply)

    def _answer(self, action: str, params: Data) -> tuple[bool, object]:
        self.calls.append((action, params))
        if action.startswith("send_"):
            return True, self._hear(action, params)
        answers: dict[str, object] = {
            "get_login_info": {"user_id": BOT_ID, "nickname": "小忆"},
            "get_status": {"online": True, "good": True},
            "get_version_info": {"app_name": "amrita-memory-demo", "app_version": "1", "protocol_version": "v11"},
            "get_friend_list": [{"user_id": user, "nickname": self.nickname, "remark": ""} for user in self._people],
            "get_group_list": [self._group(group) for group in self._groups],
            "get_group_info": self._group(int(params.get("group_id", 0))),
            "get_stranger_info": {
                "user_id": params.get("user_id"),
                "nickname": self.nickname,
                "sex": "unknown",
                "age": 0,
            },
            "get_group_member_info": self._member(params),
            "get_group_member_list": [
                self._member({"group_id": params.get("group_id"), "user_id": user})
                for user in self._groups.get(int(params.get("group_id", 0)), {})
            ],
            "can_send_image": {"yes": False},
            "can_send_record": {"yes": False},
            "delete_msg": None,
            "set_msg_emoji_like": None,
        }
        return action in answers, answers.get(action)

    def _group(self, group: int) -> Data:
        return {"group_id": group, "group_name": f"群{group}", "member_count": 3, "max_member_count": 200}

    def _member(self, params: Data) -> Data:
        group, user = int(params.get("group_id", 0)), int(params.get("user_id", 0))
        role = self._groups.get(group, {}).get(user, "member")
        return {"group_id": group, "user_id": user, "nickname": self.nickname, "card": "", "role": role, "title": ""}

    def _hear(self, action: str, params: Data) -> Data:
        group = params.get("group_id")
        kind = str(params.get("message_type") or ("private" if "private" in action or not group else "group"))
        address = f"group:{group}" if kind == "group" else f"private:{params.get('user_id')}"
        self.heard.append(Heard(address, plain(params.get("message", params.get("messages")))))
        self._news.set()
        return {"message_id": next(self._ids), "forward_id": "demo"}
