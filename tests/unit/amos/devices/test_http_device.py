from __future__ import annotations

import pytest
from support.loopback import answer, loopback

from amrita_plugin_memory.amos.devices import HttpDevice, HttpRequestConfig
from amrita_plugin_memory.amos.errors import HttpFailed, HttpRefused
from amrita_plugin_memory.amos.sandbox import HttpBroker, HttpPolicy
from amrita_plugin_memory.kernel.errors import InvalidInput

NEAR = HttpDevice(HttpBroker(HttpPolicy(hosts=("*",), private=True)))


async def test_parameters_go_behind_the_url_and_a_body_is_sent_as_json() -> None:
    async with loopback(lambda asked: answer(asked.body, content_type="application/json")) as server:
        got = await NEAR.request(
            HttpRequestConfig(f"{server.url}/p?a=1", "POST", params={"城": ["上海", 2]}, body={"中": 1})
        )
    assert (got.ok, got.json(), server.asked[0].headers["content-type"]) == (True, {"中": 1}, "application/json")
    assert server.asked[0].path == "/p?a=1&%E5%9F%8E=%E4%B8%8A%E6%B5%B7&%E5%9F%8E=2"


async def test_text_is_read_in_the_charset_that_came_with_it() -> None:
    async with loopback(lambda _: answer("你好".encode("gbk"), content_type="text/plain; charset=GBK")) as server:
        assert (await NEAR.request(server.url)).text == "你好"
    async with loopback(lambda _: answer(b"\xff", content_type="text/plain; charset=nonsense")) as server:
        got = await NEAR.request(server.url)
    assert got.text == "\ufffd"
    with pytest.raises(HttpFailed, match="JSON"):
        got.json()


async def test_an_error_status_is_an_answer() -> None:
    async with loopback(lambda _: answer(b"no", 404)) as server:
        got = await NEAR.request(server.url)
    assert (got.ok, got.status, got.text) == (False, 404, "no")


async def test_the_device_of_a_root_reaches_no_private_address_and_no_file() -> None:
    async with loopback(lambda _: answer(b"x")) as server:
        for url in (server.url, "http://localhost/", "http://169.254.169.254/latest", "file:///etc/passwd"):
            with pytest.raises((HttpRefused, HttpFailed)):
                await HttpDevice().request(url)
    assert server.asked == []


async def test_a_body_that_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidInput):
        await NEAR.request("http://a.test/", method="POST", body={1, 2})
