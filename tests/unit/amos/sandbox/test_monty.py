from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.loopback import Asked, answer, loopback

from amrita_plugin_memory.amos.errors import (
    EnvVarDeniedError,
    SandboxLimit,
    SandboxTimeout,
    SandboxUnavailable,
    ToolCodeError,
    ToolResultError,
)
from amrita_plugin_memory.amos.sandbox import HttpBroker, HttpPolicy, Sandbox, SandboxOptions
from amrita_plugin_memory.amos.sandbox.monty import worker

linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")


def workers() -> set[int]:
    """Monty workers that are children of this process."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if "(monty)" in stat and int(stat.rsplit(")", 1)[1].split()[1]) == os.getpid():
                found.add(int(entry.name))
    return found


async def value(box: Sandbox, source: str, params: dict[str, object] | None = None, **more: object) -> object:
    return (await box.run(source, params, **more)).value  # type: ignore[arg-type]


async def test_a_function_named_run_wins_over_the_top_level_value(sandbox: Sandbox) -> None:
    assert await value(sandbox, "__return_value__ = params['x']", {"x": 3}) == 3
    assert await value(sandbox, "__return_value__ = 1\ndef run(params):\n    return params['x'] + 1", {"x": 3}) == 4
    assert await value(sandbox, "x = 1") is None


async def test_functions_see_each_other_and_the_module(sandbox: Sandbox) -> None:
    assert (
        await value(
            sandbox, "K = 2\ndef twice(n):\n    return n * K\ndef run(params):\n    return twice(params['n'])", {"n": 4}
        )
        == 8
    )


async def test_what_is_printed_comes_back_beside_the_value(sandbox: Sandbox) -> None:
    ran = await sandbox.run("print('你好')\n__return_value__ = 1")
    assert (ran.value, ran.output) == (1, "你好\n")


async def test_a_run_sees_nothing_of_the_run_before(sandbox: Sandbox) -> None:
    await value(sandbox, "LEFT = 1")
    code = "import json\ntry:\n    __return_value__ = LEFT\nexcept NameError:\n    __return_value__ = 'clean'"
    assert await value(sandbox, code) == "clean"


async def test_the_callers_parameters_are_never_changed(sandbox: Sandbox) -> None:
    params = {"items": [1]}
    assert await value(sandbox, "params['items'].append(2)\n__return_value__ = params['items']", params) == [1, 2]
    assert params == {"items": [1]}


@pytest.mark.parametrize(
    ("code", "error", "says"),
    [
        ("x = 1\nraise ValueError('boom')", ToolCodeError, "第 2 行.*boom"),
        ("x = 1\n\ny = = 2", ToolCodeError, "语法错误（第 3 行）"),
        ("def f():\n    yield 1", ToolCodeError, "第 2 行.*yield"),
        ("open('/etc/passwd')", ToolCodeError, "PermissionError"),
        ("import os\nos.environ['HOME']", ToolCodeError, "os.environ"),
        ("import socket", ToolCodeError, "socket"),
        ("__return_value__ = {1, 2}", ToolResultError, "JSON"),
        ("__return_value__ = float('nan')", ToolResultError, "JSON"),
        ("x = []\nx.append(x)\n__return_value__ = x", ToolResultError, "JSON"),
        ("__return_value__ = 'x' * 700000", ToolResultError, "JSON"),
        ("x = 'a' * 1000\nwhile True:\n    x = x + x", SandboxLimit, "上限"),
        ("while True:\n    print('x' * 1000)", SandboxLimit, "上限"),
        ("def f():\n    return f()\nf()", ToolCodeError, "Recursion"),
    ],
)
async def test_every_way_to_fail_has_its_error_and_one_sentence(
    sandbox: Sandbox, code: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        await sandbox.run(code)


@linux
async def test_an_endless_loop_ends_at_the_deadline_and_leaves_no_process_no_thread_and_a_quick_event_loop(
    sandbox: Sandbox,
) -> None:
    await sandbox.run("1")
    before, threads = workers(), threading.active_count()
    worst, stop = 0.0, False

    async def watch() -> None:
        nonlocal worst
        while not stop:
            begin, used = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.005)
            # On a crowded machine the thread may be kept waiting by others: only what it computed itself counts.
            worst = max(worst, min(time.perf_counter() - begin - 0.005, time.thread_time() - used))

    watcher = asyncio.create_task(watch())
    begin = time.monotonic()
    with pytest.raises(SandboxTimeout, match="0\\.3 秒"):
        await sandbox.run(
            "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
            timeout=0.3,
        )
    assert time.monotonic() - begin < 2.5
    stop = True
    await watcher
    assert worst < 0.05
    assert threading.active_count() <= threads
    assert workers() <= before


@pytest.fixture
async def single() -> AsyncIterator[tuple[Sandbox, set[int]]]:
    """A sandbox of one worker, and the workers that were there before it."""
    before = workers()
    box = Sandbox(SandboxOptions(max_processes=1), {})
    await box.run("1")
    yield box, before
    await box.aclose()


@linux
async def test_a_cancelled_run_takes_its_worker_with_it(single: tuple[Sandbox, set[int]]) -> None:
    box, before = single
    (pid,) = workers() - before
    idle = _cpu(pid)
    running = asyncio.create_task(box.run("while True: pass", timeout=30))
    while _cpu(pid) < idle + 3:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not _alive(pid)
    assert await value(box, "__return_value__ = 1") == 1


@linux
async def test_a_worker_has_an_empty_environment_nothing_of_our_files_and_the_kernel_behind_it(
    single: tuple[Sandbox, set[int]], tmp_path: Path
) -> None:
    box, before = single
    (pid,) = workers() - before
    status = Path(f"/proc/{pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    assert Path(f"/proc/{pid}/environ").read_bytes() == b""
    opened = {int(link.name): str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    assert all(
        name.startswith(("pipe:", "socket:", "anon_inode:", "/dev/null")) for fd, name in opened.items() if fd != 2
    ), opened
    await box.aclose()
    assert not _alive(pid)


def _cpu(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def test_at_most_so_many_run_at_once_and_the_rest_wait_no_longer_than_they_must() -> None:
    box = Sandbox(SandboxOptions(max_processes=1, queue_timeout=0.2), {})
    try:
        await box.run("1")
        slow = asyncio.create_task(box.run("while True: pass", timeout=1))
        await asyncio.sleep(0.05)
        with pytest.raises(SandboxUnavailable, match="忙"):
            await box.run("1")
        with pytest.raises(SandboxTimeout):
            await slow
    finally:
        await box.aclose()


async def test_without_the_interpreter_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MONTY_BIN", str(tmp_path / "gone"))
    box = Sandbox(SandboxOptions(), {})
    with pytest.raises(SandboxUnavailable):
        await box.run("__return_value__ = 1")


async def test_without_the_package_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    monkeypatch.setitem(sys.modules, "pydantic_monty._binary", None)
    with pytest.raises(SandboxUnavailable, match="pydantic-monty"):
        await Sandbox(SandboxOptions(), {}).run("__return_value__ = 1")


async def test_a_failing_self_test_refuses_and_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from amrita_plugin_memory.amos.sandbox.monty import engine

    monkeypatch.setattr(engine, "_CANARIES", (("__return_value__ = 'harmless'", ToolCodeError),))
    box = Sandbox(SandboxOptions(), {})
    try:
        with pytest.raises(SandboxUnavailable, match="自检"):
            await box.run("__return_value__ = 1")
    finally:
        await box.aclose()


async def test_a_kernel_that_cannot_confine_is_refused_when_that_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_missing_layers", lambda binary: ["seccomp"])
    with pytest.raises(SandboxUnavailable, match="内核"):
        await Sandbox(SandboxOptions(require_os_layer=True), {}).run("1")
    box = Sandbox(SandboxOptions(), {})
    try:
        assert await value(box, "__return_value__ = 1") == 1
    finally:
        await box.aclose()


@linux
async def test_a_launcher_that_cannot_be_executed_is_no_launcher(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Path, "chmod", lambda self, mode: None)
    with pytest.raises(SandboxUnavailable, match="内核"):
        worker.prepare(required=True)
    assert not worker.prepare(required=False).confined


async def test_a_worker_that_is_no_worker_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "monty").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "monty").chmod(0o700)
    for confined in (False, True):
        monkeypatch.setattr(
            worker, "prepare", lambda required, here=confined: worker.Worker(str(tmp_path / "monty"), here)
        )
        box = Sandbox(SandboxOptions(), {})
        with pytest.raises(SandboxUnavailable):
            await box.run("__return_value__ = 1")
        await box.aclose()


async def test_switched_off_means_off() -> None:
    with pytest.raises(SandboxUnavailable, match="off"):
        await Sandbox(SandboxOptions(engine="off"), {}).run("1")


async def test_a_tool_bound_to_the_other_engine_does_not_run_where_that_is_not_enabled(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxUnavailable, match="process"):
        await sandbox.run("1", engine="process")


# -- the network and secrets ------------------------------------------------------------------------------------------

SEED = """api_key = "{{ENV.WEATHER_API_KEY}}"
import urllib.request, json
url = f"http://127.0.0.1:PORT/w?key={api_key}&city={params['city']}"
with urllib.request.urlopen(url) as resp:
    __return_value__ = json.loads(resp.read())
"""


async def test_the_seeds_weather_tool_runs_as_written_and_its_key_does_not_come_back() -> None:
    def respond(asked: Asked) -> bytes:
        return answer(json.dumps({"path": asked.path, "晴": 21}).encode(), content_type="application/json")

    options = SandboxOptions(allow_network=True, hosts=("127.0.0.1",), env_whitelist=("WEATHER_*",))
    box = Sandbox(options, {"WEATHER_API_KEY": "k3y-very-secret"})
    async with loopback(respond) as server:
        box.broker = HttpBroker(HttpPolicy(hosts=("127.0.0.1",), private=True))
        try:
            got = await value(box, SEED.replace("PORT", str(server.port)), {"city": "上海"})
        finally:
            await box.aclose()
    assert server.asked[0].path.startswith("/w?key=k3y-very-secret&city=%E4%B8%8A")
    assert got == {"path": "/w?key=***&city=%E4%B8%8A%E6%B5%B7", "晴": 21}


async def test_the_network_is_closed_until_it_is_opened_and_named(sandbox: Sandbox) -> None:
    code = "import urllib.request\nurllib.request.urlopen('http://a.test/')"
    with pytest.raises(ToolCodeError, match=r"第 2 行.*allow_network"):
        await sandbox.run(code)


async def test_requests_and_posts_go_through_the_broker_too() -> None:
    box = Sandbox(SandboxOptions(allow_network=True, hosts=("*",)), {})
    box.broker = HttpBroker(HttpPolicy(hosts=("*",), private=True))
    code = (
        "import requests\nimport urllib.request\nfrom urllib.parse import urlencode\n"
        "def run(params):\n    a = requests.post(params['u'], json={'x': 1}, params={'q': '中'})\n"
        "    b = urllib.request.urlopen(urllib.request.Request(params['u'], data=urlencode({'y': 2}).encode(), headers={'X-K': 'v'}))\n"
        "    return [a.status_code, a.json(), b.read().decode(), b.headers.get('X-Kind')]\n"
    )
    async with loopback(lambda asked: answer(asked.body, x_kind="k")) as server:
        try:
            assert await value(box, code, {"u": server.url}) == [200, {"x": 1}, "y=2", "k"]
        finally:
            await box.aclose()
    assert server.asked[0].path == "/?q=%E4%B8%AD"
    assert (server.asked[1].method, server.asked[1].headers["x-k"]) == ("POST", "v")


async def test_a_slow_server_does_not_outlive_the_deadline() -> None:
    box = Sandbox(SandboxOptions(allow_network=True, hosts=("*",)), {})
    box.broker = HttpBroker(HttpPolicy(hosts=("*",), private=True))
    silent = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        with pytest.raises((SandboxTimeout, ToolCodeError)):
            await box.run("import urllib.request\nurllib.request.urlopen(params['u'])", {"u": url}, timeout=0.5)
    finally:
        silent.set()
        server.close()
        await box.aclose()


async def test_a_secret_is_scrubbed_from_values_output_and_errors() -> None:
    box = Sandbox(SandboxOptions(env_whitelist=("*_KEY",)), {"MY_KEY": "topsecret-1"})
    try:
        ran = await box.run("k = {{ENV.MY_KEY}}\nprint(k)\n__return_value__ = {k: [k, 'x' + k]}")
        assert (ran.value, ran.output) == ({"***": ["***", "x***"]}, "***\n")
        with pytest.raises(ToolCodeError) as caught:
            await box.run("raise ValueError('{{ENV.MY_KEY}}')")
        assert "topsecret" not in str(caught.value)
        assert caught.value.__cause__ is None
        with pytest.raises(EnvVarDeniedError):
            await box.run("x = '{{ENV.OTHER}}'")
    finally:
        await box.aclose()


# -- checking -------------------------------------------------------------------------------------------------------


async def test_checking_code_says_the_line_and_runs_nothing(sandbox: Sandbox) -> None:
    await sandbox.check("while True: pass\nraise ValueError")
    with pytest.raises(ToolCodeError, match="第 2 行"):
        await sandbox.check("x = 1\ny = = 2")
    with pytest.raises(ToolCodeError, match="第 1 行"):
        await sandbox.check("class A(Exception): pass")
    await sandbox.check("k = '{{ENV.ANY_KEY}}'")


async def test_checking_javascript(sandbox: Sandbox) -> None:
    await sandbox.check(
        "const f = async (a) => { return `x${a}` ?? null; };\nclass A { #b = 1 }", language="javascript"
    )
    with pytest.raises(ToolCodeError, match="第 2 行"):
        await sandbox.check("let a = 1;\nlet = = 2;", language="javascript")
    with pytest.raises(ToolCodeError):
        await sandbox.check("function f( {", language="javascript")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "import html\n__return_value__ = [html.unescape('&lt;&#20013;&#x41;&nope;&amp'), html.escape('<\"')]",
            ["<中A&nope;&amp", "&lt;&quot;"],
        ),
        (
            "import statistics as s\n__return_value__ = [s.mean([1, 2, 3]), s.median([3, 1, 2]), round(s.stdev([1, 2, 3]), 3), s.mode('aab')]",
            [2, 2, 1.0, "a"],
        ),
        ("from urllib.parse import *", None),
        (
            "import urllib.parse as u\n__return_value__ = [u.quote('中 /'), u.unquote('%E4%B8%AD%2'), u.parse_qs('a=1&a=2&b=%20'), u.urljoin('http://a/b/c', '../d')]",
            ["%E4%B8%AD%20/", "中%2", {"a": ["1", "2"], "b": [" "]}, "http://a/d"],
        ),
        (
            "from urllib.parse import urlparse\nu = urlparse('https://u@h.test:8/p?q=1#f')\n__return_value__ = [u.scheme, u.hostname, u.port, u.path, u.query, u.geturl()]",
            ["https", "h.test", 8, "/p", "q=1", "https://u@h.test:8/p?q=1#f"],
        ),
        (
            "import textwrap, string\n__return_value__ = [textwrap.dedent('  a\\n   b'), textwrap.wrap('aa bb cc', 5), len(string.punctuation)]",
            ["a\n b", ["aa bb", "cc"], 32],
        ),
        ("import uuid\nu = str(uuid.uuid4())\n__return_value__ = [len(u), u[14]]", [36, "4"]),
    ],
)
async def test_prelude_modules_do_what_pythons_do(sandbox: Sandbox, code: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(ToolCodeError):
            await sandbox.run(code)
    else:
        assert await value(sandbox, code) == expected
