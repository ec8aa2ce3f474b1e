"""The OpenAI-compatible door of the script: streaming or not, on a free port of 127.0.0.1, every request recorded."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiohttp import web

from amrita_plugin_memory.demo.folder import Endpoint
from amrita_plugin_memory.demo.net import LOOPBACK

from .reading import ChatRequest, Data, Reading, read
from .rules import Reply, respond

MODEL_NAME: Final = "amrita-memory-demo-script"
_PIECE: Final = 8


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it arrived, and what the script answered."""

    body: Data
    reading: Reading
    reply: Reply

    @property
    def everything(self) -> str:
        """All the text of all messages, tool calls included: for proofs that something is absent."""
        return json.dumps(self.body.get("messages"), ensure_ascii=False)


@dataclass(slots=True)
class ScriptModel:
    """The server; ``requests`` grows by one for every call of the host.

    ``respond`` decides each answer; the default is the table in `rules`.
    """

    log: Path
    respond: Callable[[Reading], Reply] = respond
    key: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)
    requests: list[Recorded] = field(default_factory=list[Recorded], init=False)
    _runner: web.AppRunner | None = field(default=None, init=False)
    _port: int = field(default=0, init=False)

    @property
    def endpoint(self) -> Endpoint:
        """What the host has to know."""
        return Endpoint(f"http://{LOOPBACK}:{self._port}/v1", self.key, MODEL_NAME)

    async def start(self) -> None:
        """Listen on a free port."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, 0)
        await site.start()
        self._port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening; the record stays."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL_NAME, "object": "model"}]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.json_response({"error": {"message": "wrong key", "type": "invalid_request_error"}}, status=401)
        body: Data = await request.json()
        asked = ChatRequest.model_validate(body)
        reading = read(asked)
        recorded = Recorded(body, reading, self.respond(reading))
        self.requests.append(recorded)
        await asyncio.to_thread(self._write_log, recorded)
        completion = completion_of(asked, recorded.reply)
        return await _stream(request, asked, completion) if asked.stream else web.json_response(completion)

    def _write_log(self, recorded: Recorded) -> None:
        reply = {"rule": recorded.reply.rule, "text": recorded.reply.text,
            "calls": [{"tool": c.tool, "arguments": dict(c.arguments)} for c in recorded.reply.calls]}  # fmt: skip
        line = json.dumps({"time": time.time(), "request": recorded.body, "reply": reply}, ensure_ascii=False)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as log:
            log.write(line + "\n")


def completion_of(request: ChatRequest, reply: Reply) -> Data:
    """The answer in the form of a chat completion; token numbers are characters / 4, as good as a script can count."""
    calls = [
        {
            "id": f"call_{secrets.token_hex(6)}",
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)},
        }
        for call in reply.calls
    ]
    message: Data = {"role": "assistant", "content": reply.text}
    if calls:
        message["tool_calls"] = calls
    asked = sum(len(m.text) for m in request.messages) // 4 + 1
    said = (len(reply.text) + sum(len(json.dumps(c, ensure_ascii=False)) for c in calls)) // 4 + 1
    return {
        "id": f"chatcmpl-{secrets.token_hex(8)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL_NAME,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said},
    }


def chunks_of(completion: Data, *, with_usage: bool) -> list[Data]:
    """The same answer as the chunks of a stream."""
    message: Data = completion["choices"][0]["message"]
    deltas: list[Data] = [{"role": "assistant", "content": ""}]
    text = str(message["content"])
    deltas += [{"content": text[i : i + _PIECE]} for i in range(0, len(text), _PIECE)]
    deltas += [{"tool_calls": [{"index": i, **call}]} for i, call in enumerate(message.get("tool_calls", []))]
    head: Data = {k: completion[k] for k in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks: list[Data] = [head | {"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    reason = completion["choices"][0]["finish_reason"]
    chunks.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    return [*chunks, head | {"choices": [], "usage": completion["usage"]}] if with_usage else chunks


async def _stream(request: web.Request, asked: ChatRequest, completion: Data) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    with_usage = asked.stream_options is not None and asked.stream_options.include_usage
    for chunk in chunks_of(completion, with_usage=with_usage):
        await response.write(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n")
    await response.write(b"data: [DONE]\n\n")
    return response
