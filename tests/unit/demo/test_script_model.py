import json

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.demo.script.model import ScriptModel, chunks_of, completion_of
from amrita_plugin_memory.demo.script.reading import ChatRequest, as_object, hit_texts, read, spoken
from amrita_plugin_memory.demo.script.rules import Call, Reply


def test_the_prefix_of_the_host_and_a_mention_are_not_what_the_person_said():
    assert spoken("[群主][2026-11-30 Monday 23:06:52][阿木（10001）]说:记住：说好了") == "记住：说好了"
    assert spoken("[自己][2026][阿木(1)]说: @小忆 你好") == "你好"
    assert spoken("没有前缀") == "没有前缀"


def test_a_request_is_read_by_roles_and_only_this_turn_counts():
    request = ChatRequest.model_validate(
        {
            "messages": [
                {"role": "system", "content": "甲<MEMO>\n备忘\n</MEMO>"},
                {"role": "user", "content": "旧"},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "0", "function": {"name": "old"}}]},
                {"role": "tool", "tool_call_id": "0", "content": "旧结果"},
                {"role": "user", "content": [{"type": "text", "text": "新"}, {"type": "image_url"}]},
                {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "write_memory"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "好"},
            ],
            "tools": [{"type": "function", "function": {"name": "write_memory", "parameters": {}}}],
        }
    )
    reading = read(request)
    assert (reading.memo, reading.said, reading.tools, reading.rounds) == ("备忘", "新", ("write_memory",), 1)
    assert reading.results == (("write_memory", "好"),)
    assert reading.result_of("old") is None


@pytest.mark.parametrize("text", ["", "ERR: x", "[1]", "null", None, '{"a":'])
def test_a_result_that_is_no_object_reads_as_empty(text):
    assert as_object(text) == {}
    assert hit_texts(text) == []


replies = st.builds(
    Reply,
    st.just("rule"),
    st.text(max_size=60),
    st.lists(
        st.builds(
            Call,
            st.sampled_from(["write_memory", "read_memory"]),
            st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3),
        ),
        max_size=3,
    ).map(tuple),
)


@given(reply=replies, with_usage=st.booleans())
def test_a_stream_puts_together_to_the_plain_answer(reply, with_usage):
    completion = completion_of(ChatRequest(), reply)
    message = completion["choices"][0]["message"]
    text, calls, usage = "", [], None
    for chunk in chunks_of(completion, with_usage=with_usage):
        usage = chunk.get("usage", usage)
        for choice in chunk["choices"]:
            text += choice["delta"].get("content", "")
            calls += [{k: v for k, v in c.items() if k != "index"} for c in choice["delta"].get("tool_calls", [])]
    assert text == message["content"] == reply.text
    assert calls == message.get("tool_calls", [])
    assert [json.loads(c["function"]["arguments"]) for c in calls] == [dict(c.arguments) for c in reply.calls]
    assert usage == (completion["usage"] if with_usage else None)


@pytest.fixture
async def model(tmp_path):
    server = ScriptModel(tmp_path / "logs" / "llm.jsonl")
    await server.start()
    yield server
    await server.stop()


async def post(model, body, key=None):
    async with aiohttp.ClientSession() as session:
        url = model.endpoint.base_url + "/chat/completions"
        async with session.post(url, json=body, headers={"Authorization": f"Bearer {key or model.key}"}) as answer:
            return answer.status, await answer.text()


async def test_an_answer_over_the_wire_is_recorded_in_memory_and_on_disk(model):
    body = {"messages": [{"role": "user", "content": "你好"}]}
    status, text = await post(model, body)
    assert status == 200
    answer = json.loads(text)["choices"][0]["message"]["content"]
    assert answer == model.requests[0].reply.text
    line = json.loads(model.log.read_text("utf-8"))
    assert (line["request"], line["reply"]["text"]) == (body, answer)


async def test_a_stream_over_the_wire_ends_as_the_protocol_says(model):
    status, text = await post(
        model,
        {"messages": [{"role": "user", "content": "你好"}], "stream": True, "stream_options": {"include_usage": True}},
    )
    events = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert status == 200
    assert events[-1] == "[DONE]"
    assert json.loads(events[-2])["usage"]["total_tokens"] > 0


async def test_nobody_without_the_key_is_answered(model):
    status, _ = await post(model, {"messages": []}, key="wrong")
    assert (status, model.requests) == (401, [])
