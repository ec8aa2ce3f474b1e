from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest
from support.loopback import Asked, answer, loopback

from amrita_plugin_memory.amos.errors import HttpFailed, HttpRefused
from amrita_plugin_memory.amos.sandbox.http import HttpBroker, HttpPolicy, HttpRequest

HERE = HttpPolicy(hosts=("*",), private=True, timeout=5)


async def fetch(url: str, policy: HttpPolicy = HERE, **request: object):
    return await HttpBroker(policy).fetch(HttpRequest(url, **request))  # type: ignore[arg-type]


async def test_an_answer_comes_back_decoded_with_its_status() -> None:
    async with loopback(lambda _: answer(gzip.compress("你好".encode()), 201, content_encoding="gzip")) as server:
        got = await fetch(f"{server.url}/a?b=中", headers={"X-Key": "k"})
    assert (got.status, got.body.decode(), got.url) == (201, "你好", f"{server.url}/a?b=%E4%B8%AD")
    asked = server.asked[0]
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert (asked.path, asked.headers["x-key"]) == ("/a?b=%E4%B8%AD", "k")
    assert "cookie" not in asked.headers


async def test_a_body_is_posted_with_its_length() -> None:
    async with loopback(lambda asked: answer(asked.body[::-1])) as server:
        got = await fetch(server.url, method="post", body=b"abc")
    assert (got.body, server.asked[0].method) == (b"cba", "POST")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "127.1", "0x7f.1", "0177.0.0.1", "0.0.0.0"]
)
async def test_no_spelling_of_loopback_is_connected_to_through_a_tools_policy(host: str) -> None:
    async with loopback(lambda _: answer(b"x")) as server:
        policy = HttpPolicy(hosts=("*",), ports=frozenset((server.port,)))
        with pytest.raises((HttpRefused, HttpFailed)):
            await fetch(f"http://{host}:{server.port}/", policy)
        assert server.asked == []


async def test_a_name_with_one_private_address_among_public_ones_is_refused_before_any_connection() -> None:
    async with loopback(lambda _: answer(b"x")) as server:

        async def mixed(host: str, port: int) -> list[str]:
            return ["127.0.0.1", "8.8.8.8"]

        policy = HttpPolicy(hosts=("*",), ports=frozenset((server.port,)))
        with pytest.raises(HttpRefused, match="公网"):
            await HttpBroker(policy, mixed).fetch(HttpRequest(f"http://a.test:{server.port}/"))
        assert server.asked == []


async def test_the_name_is_resolved_once_so_that_it_cannot_change_between_check_and_use() -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]
    async with loopback(lambda _: answer(b"x")) as server:

        async def rebinding(host: str, port: int) -> list[str]:
            return answers.pop(0)

        got = await HttpBroker(HERE, rebinding).fetch(HttpRequest(f"http://a.test:{server.port}/"))
    assert (got.body, len(answers), server.asked[0].headers["host"]) == (b"x", 1, f"a.test:{server.port}")


async def test_every_hop_of_a_redirect_is_judged_again() -> None:
    async with loopback(lambda _: answer(b"", 302, location="http://forbidden.test/")) as server:
        policy = HttpPolicy(hosts=("127.0.0.1",), private=True)
        with pytest.raises(HttpRefused, match="allow_hosts"):
            await fetch(server.url, policy)


async def test_a_redirect_to_another_scheme_is_refused() -> None:
    async with loopback(lambda _: answer(b"", 302, location="file:///etc/passwd")) as server:
        with pytest.raises(HttpRefused):
            await fetch(server.url)


async def test_authorization_does_not_cross_to_another_host_but_stays_on_the_same() -> None:
    def respond(asked: Asked) -> bytes:
        if asked.path == "/same":
            return answer(b"", 302, location="/end")
        if asked.path == "/other":
            return answer(b"", 307, location=f"http://localhost:{asked.headers['host'].split(':')[1]}/end")
        return answer(asked.headers.get("authorization", "none").encode())

    async with loopback(respond) as server:
        assert (await fetch(f"{server.url}/same", headers={"Authorization": "k"})).body == b"k"
        assert (await fetch(f"{server.url}/other", headers={"Authorization": "k"})).body == b"none"


async def test_a_post_becomes_a_get_without_body_after_303() -> None:
    async with loopback(lambda a: answer(a.body) if a.path == "/end" else answer(b"", 303, location="/end")) as server:
        got = await fetch(server.url, method="POST", body=b"secret")
    assert (got.body, server.asked[1].method) == (b"", "GET")


async def test_redirects_end() -> None:
    async with loopback(lambda _: answer(b"", 302, location="/")) as server:
        with pytest.raises(HttpFailed, match="跳转超过 3 次"):
            await fetch(server.url)
    assert len(server.asked) == 4


@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress, lambda b: gzip.compress(gzip.compress(b))])
async def test_a_body_above_the_limit_is_refused_also_when_it_is_small_on_the_wire(pack) -> None:  # type: ignore[no-untyped-def]
    data = pack(b"0" * (4 << 20))
    coding = {} if len(data) > 1 << 20 else {"content_encoding": "gzip"}
    policy = HttpPolicy(hosts=("*",), private=True, max_body=1000 if coding else 1 << 20)
    async with loopback(lambda _: answer(data, **coding)) as server:
        with pytest.raises(HttpFailed, match="上限"):
            await fetch(server.url, policy)


async def test_a_bomb_of_one_chunk_is_never_held_whole(tmp_path: object) -> None:
    import tracemalloc

    data = gzip.compress(b"\0" * (64 << 20))
    assert len(data) < 70_000
    async with loopback(lambda _: answer(data, content_encoding="gzip")) as server:
        tracemalloc.start()
        try:
            with pytest.raises(HttpFailed, match="上限"):
                await fetch(server.url)
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "zstd"])
async def test_an_encoding_that_was_not_asked_for_is_refused(coding: str) -> None:
    async with loopback(lambda _: answer(b"x", content_encoding=coding)) as server:
        with pytest.raises(HttpFailed, match="压缩"):
            await fetch(server.url)


async def test_deflate_and_damaged_gzip_are_told_apart() -> None:
    async with loopback(lambda _: answer(zlib.compress(b"ok"), content_encoding="deflate")) as server:
        assert (await fetch(server.url)).body == b"ok"
    async with loopback(lambda _: answer(b"not gzip", content_encoding="gzip")) as server:
        with pytest.raises(HttpFailed, match="损坏"):
            await fetch(server.url)


async def test_a_server_that_never_answers_is_left_at_the_deadline() -> None:
    silent = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(HttpFailed, match="秒内"):
        await HttpBroker(HERE).fetch(HttpRequest(f"http://127.0.0.1:{port}/"), within=0.2)
    silent.set()
    server.close()


async def test_what_is_no_http_is_a_failure_in_words() -> None:
    async with loopback(lambda _: b"SSH-2.0-x\r\n") as server:
        with pytest.raises(HttpFailed, match="HTTP"):
            await fetch(server.url)
    with pytest.raises(HttpFailed):
        await fetch("http://127.0.0.1:9/")


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with loopback(lambda _: answer(b"direct")) as server:
        assert (await fetch(server.url)).body == b"direct"


async def test_an_unknown_method_and_an_oversized_request_are_refused() -> None:
    with pytest.raises(HttpRefused, match="方法"):
        await fetch("http://127.0.0.1/", method="CONNECT")
    with pytest.raises(HttpRefused, match="上限"):
        await fetch("http://127.0.0.1/", method="POST", body=b"0" * (300 << 10))
