import asyncio

import pytest
from aiohttp import web

from amrita_plugin_memory.demo.onebot import BOT_ID, OneBotClient, Place
from amrita_plugin_memory.kernel.errors import Unavailable


class FakeBot:
    """The bot's side of the reverse WebSocket: keeps events, calls actions, keeps answers."""

    def __init__(self):
        self.headers, self.events, self.answers = None, asyncio.Queue(), asyncio.Queue()
        self.socket = None

    async def serve(self, request):
        self.headers = request.headers
        self.socket = web.WebSocketResponse()
        await self.socket.prepare(request)
        async for frame in self.socket:
            data = frame.json()
            await (self.answers if "retcode" in data else self.events).put(data)
        return self.socket

    async def call(self, action, **params):
        await self.socket.send_json({"action": action, "params": params, "echo": action})
        return await self.answers.get()


@pytest.fixture
async def bot():
    fake = FakeBot()
    app = web.Application()
    app.router.add_get("/ws", fake.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"ws://127.0.0.1:{runner.addresses[0][1]}/ws"
    yield fake
    await runner.cleanup()


@pytest.fixture
async def client(bot):
    one = OneBotClient(bot.url, "token")
    await one.connect()
    await bot.events.get()
    yield one
    await one.close()


async def test_it_introduces_itself_with_its_account_and_token(bot, client):
    assert bot.headers["X-Self-ID"] == str(BOT_ID)
    assert bot.headers["Authorization"] == "Bearer token"


async def test_a_private_and_a_group_message_and_a_temporary_session_look_as_the_protocol_says(bot, client):
    await client.say(Place(1), "甲")
    private = await bot.events.get()
    assert (private["message_type"], private["sub_type"], "group_id" in private) == ("private", "friend", False)
    await client.say(Place(1, 2, role="owner"), "乙", at=True)
    group = await bot.events.get()
    assert (group["message_type"], group["group_id"], group["sender"]["role"]) == ("group", 2, "owner")
    assert group["message"][0] == {"type": "at", "data": {"qq": str(BOT_ID)}}
    await client.say(Place(1, 2, temporary=True), "丙")
    temporary = await bot.events.get()
    assert (temporary["message_type"], temporary["sub_type"], temporary["group_id"]) == ("private", "group", 2)


async def test_what_the_bot_sends_is_heard_at_its_place(bot, client):
    text = [{"type": "text", "data": {"text": "好"}}]
    for action, params in [
        ("send_msg", {"message_type": "private", "user_id": 1, "message": text}),
        ("send_msg", {"message_type": "group", "group_id": 2, "user_id": 1, "message": text}),
        ("send_private_msg", {"user_id": 1, "message": text}),
        ("send_group_forward_msg", {"group_id": 2, "messages": [{"type": "node", "data": {"content": text}}]}),
    ]:
        assert (await bot.call(action, **params))["data"]["message_id"]
    assert [m.address for m in client.heard] == ["private:1", "group:2", "private:1", "group:2"]
    assert {m.text for m in client.heard} == {"好"}


async def test_waiting_gives_the_first_new_message_of_that_place_or_none(bot, client):
    waiting = asyncio.create_task(client.wait("group:2", since=0, within=10))
    await bot.call("send_private_msg", user_id=1, message="私")
    await bot.call("send_group_msg", group_id=2, message="群")
    assert (await waiting).text == "群"
    assert await client.wait("group:2", since=2, within=0.01) is None


async def test_the_host_gets_the_answers_it_asks_for_and_a_refusal_for_the_rest(bot, client):
    await client.say(Place(1, 2, role="admin"), "在")
    assert (await bot.call("get_group_member_info", group_id=2, user_id=1))["data"]["role"] == "admin"
    assert (await bot.call("get_friend_list"))["data"][0]["user_id"] == 1
    assert (await bot.call("no_such_action"))["retcode"] == 1404


async def test_it_can_hang_up_and_come_back(bot, client):
    await client.close()
    with pytest.raises(Unavailable):
        await client.say(Place(1), "喂")
    await client.connect()
    await client.say(Place(1), "又来了")


async def test_nobody_listening_is_told_in_time(unused_tcp_port):
    with pytest.raises(Unavailable, match="没能连上"):
        await OneBotClient(f"ws://127.0.0.1:{unused_tcp_port}/ws", "t").connect(within=0.05)
