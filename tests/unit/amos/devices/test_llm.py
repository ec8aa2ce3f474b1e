from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from support.loopback import Asked, Loopback, answer, loopback

from amrita_plugin_memory.amos.devices import LLMConfig, LLMDevice
from amrita_plugin_memory.amos.errors import LLMUnavailableError
from amrita_plugin_memory.kernel.errors import ConfigInvalid

USER = [{"role": "user", "content": "你好"}]


def reply(content: str | None = "你好！", **more: Any) -> bytes:
    message = {"role": "assistant", "content": content, **more}
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14, "prompt_cache_hit_tokens": 8}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m1", "usage": usage,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}  # fmt: skip
    return answer(json.dumps(body).encode(), content_type="application/json")


def device(server: Loopback, **more: Any) -> LLMDevice:
    given = {
        "provider": "custom",
        "base_url": f"{server.url}/v1",
        "api_key": "sk-secret-1",
        "model": "m",
        "max_retries": 0,
        **more,
    }
    return LLMDevice(LLMConfig.of(given))


async def asked(respond: Any, call: Any, **more: Any) -> tuple[Any, list[Asked]]:
    async with loopback(respond) as server:
        llm = device(server, **more)
        try:
            return await call(llm), server.asked
        finally:
            await llm.aclose()


async def test_an_answer_comes_with_its_usage_and_the_settings_reach_the_endpoint() -> None:
    got, requests = await asked(lambda _: reply(), lambda llm: llm.chat(USER, max_tokens=9), temperature=0.5)
    assert (got.content, got.model, got.finish_reason) == ("你好！", "m1", "stop")
    assert (got.usage.prompt, got.usage.completion, got.usage.total, got.usage.cached) == (11, 3, 14, 8)
    sent = json.loads(requests[0].body)
    assert (sent["model"], sent["temperature"], sent["max_tokens"], sent["messages"]) == ("m", 0.5, 9, USER)
    assert requests[0].headers["authorization"] == "Bearer sk-secret-1"


async def test_calls_of_tools_come_back_as_the_model_wrote_them() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "memory_search", "arguments": '{"query": "x"}'}}
    got, _ = await asked(lambda _: reply(None, tool_calls=[call]), lambda llm: llm.chat(USER))
    assert [(c.id, c.name, c.arguments) for c in got.tool_calls] == [("c1", "memory_search", '{"query": "x"}')]
    assert got.content == ""


async def test_a_summary_is_asked_for_with_its_instruction() -> None:
    got, requests = await asked(lambda _: reply("摘要"), lambda llm: llm.summarize("对话", "请压缩"))
    assert got == "摘要"
    assert [m["role"] for m in json.loads(requests[0].body)["messages"]] == ["system", "user"]


async def test_without_a_model_name_the_endpoints_first_one_is_used() -> None:
    def respond(request: Asked) -> bytes:
        if request.path.endswith("/models"):
            data = [{"id": name, "object": "model", "created": 1, "owned_by": "x"} for name in ("qwen", "llama")]
            return answer(json.dumps({"object": "list", "data": data}).encode(), content_type="application/json")
        return reply()

    _, requests = await asked(respond, lambda llm: llm.chat(USER), model="")
    assert json.loads(requests[-1].body)["model"] == "llama"


@pytest.mark.parametrize(
    ("status", "word"), [(401, "api_key"), (404, "model"), (429, "太多"), (500, "500"), (418, "418")]
)
async def test_a_refusal_is_one_sentence_without_the_key(status: int, word: str) -> None:
    with pytest.raises(LLMUnavailableError, match=word) as caught:
        await asked(lambda _: answer(b'{"error": {"message": "sk-secret-1"}}', status), lambda llm: llm.chat(USER))
    assert "sk-secret" not in str(caught.value)


async def test_nonsense_and_silence_are_unavailable_too() -> None:
    for body in (b"not json", b"{}", b'{"choices": []}'):
        with pytest.raises(LLMUnavailableError):
            await asked(lambda _, body=body: answer(body, content_type="application/json"), lambda llm: llm.chat(USER))
    with pytest.raises(LLMUnavailableError, match="连接不上"):
        await LLMDevice(LLMConfig.of({"base_url": "http://127.0.0.1:9/v1", "model": "m", "max_retries": 0})).chat(USER)


async def test_a_model_that_never_answers_is_left_at_the_time_limit() -> None:
    silent = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    llm = LLMDevice(LLMConfig.of({"base_url": url, "model": "m", "timeout": 0.2, "max_retries": 0}))
    with pytest.raises(LLMUnavailableError, match="秒内"):
        await llm.chat(USER)
    silent.set()
    server.close()
    await llm.aclose()


async def test_without_configuration_it_says_what_to_fill_in() -> None:
    llm = LLMDevice()
    assert not llm.available
    with pytest.raises(LLMUnavailableError, match="llm_config"):
        await llm.chat(USER)


def test_presets_fill_in_address_model_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-env")
    config = LLMConfig.of({"provider": "DeepSeek"})
    assert (config.base_url, config.model, config.api_key.get_secret_value()) == (
        "https://api.deepseek.com",
        "deepseek-chat",
        "sk-env",
    )
    assert LLMConfig.of({"provider": "ollama", "model": "q"}).base_url == "http://127.0.0.1:11434/v1"
    assert LLMConfig.of({"provider": "deepseek", "api_key": "sk-own"}).api_key.get_secret_value() == "sk-own"


def test_a_key_is_never_printed() -> None:
    config = LLMConfig.of({"api_key": "sk-very-secret", "model": "m"})
    assert "very-secret" not in repr(config) + str(config) + repr(LLMDevice(config)) + config.model_dump_json()


@pytest.mark.parametrize("given", [{"provider": "nobody"}, {"base_url": "ftp://x"}, {"timeout": 0}, {"temperature": 9}])
def test_an_unusable_configuration_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid):
        LLMConfig.of(given)
