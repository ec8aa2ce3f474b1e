"""An awkward embedding server on a free loopback port: Ollama and OpenAI in one, with every fault by switch.

    async with EmbedServer() as server:
        server.faults.max_inputs = 10
        EnvSettings(embedding_model_url=server.url, embedding_proctol="openai")

Vectors are hashed n-grams seeded by the model, so that texts that share characters are near each other. What was
asked is kept in ``requests``.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from aiohttp import web

from amrita_plugin_memory.embedding.hashed import ngram_rows

EVER = 1_000_000_000
BadVector = Literal["empty", "short", "ragged", "zero", "nan", "inf", "text"]


@dataclass(slots=True)
class Faults:
    """Switches; counters (``busy``, ``broken``, ``empty_list``) go down with each fault, EVER never ends."""

    reject_dimensions: bool = False
    reject_encoding_format: bool = False
    unnamed: bool = False  # a rejection does not say what it rejects
    base64_always: bool = False
    max_inputs: int | None = None
    over_limit: Literal["400", "413", "empty", "truncate", "error body", "unnamed"] = "400"
    max_tokens: int | None = None  # of one text; a character is a token
    over_tokens: tuple[int, str] = (413, "input must have less than {limit} tokens")
    empty_list: int = 0
    error_body: str = ""
    bad_vector: BadVector | None = None
    busy: int = 0
    retry_after: str | None = None
    broken: int = 0
    hang: bool = False
    slow: float = 0.0
    dimension_after: tuple[int, int] | None = None  # (calls, new dimension)
    old_ollama: bool = False
    only_openai: bool = False
    no_model_list: bool = False
    no_show: bool = False
    no_capabilities: bool = False
    key: str = ""
    echo_key: bool = False
    redirect: str = ""
    not_json: bool = False
    shuffled: bool = False
    poisoned: str = ""  # a text that is always refused


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass(slots=True)
class EmbedServer:
    """Start with ``async with``; ``url`` has no trailing slash and no path."""

    models: list[str] = field(default_factory=lambda: ["bge-m3:latest", "qwen3:8b"])
    embedding_models: list[str] = field(default_factory=lambda: ["bge-m3:latest"])
    dimension: int = 32
    faults: Faults = field(default_factory=Faults)
    requests: list[Asked] = field(default_factory=list)
    port: int = 0
    _runner: web.AppRunner | None = None
    _embeds: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, path: str) -> list[Asked]:
        """Requests to one path."""
        return [r for r in self.requests if r.path == path]

    @property
    def batches(self) -> list[int]:
        """Inputs of each embedding request."""
        return [len(_inputs(r.body)) for r in self.requests if r.path in ("/v1/embeddings", "/api/embed")]

    async def start(self) -> EmbedServer:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        """Stop; a second ``start`` listens on the same port."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> EmbedServer:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {}
        self.requests.append(Asked(request.method, request.path, body, dict(request.headers)))
        trouble = await self._trouble(request)
        if trouble is not None:
            return trouble
        routes = {
            ("POST", "/api/embed"): self._ollama_embed,
            ("POST", "/api/embeddings"): self._ollama_old,
            ("GET", "/api/tags"): self._ollama_tags,
            ("POST", "/api/show"): self._ollama_show,
            ("POST", "/v1/embeddings"): self._openai_embeddings,
            ("GET", "/v1/models"): self._openai_models,
        }
        handler = routes.get((request.method, request.path))
        if self.faults.only_openai and request.path.startswith("/api"):
            handler = None
        return await handler(request, body) if handler else web.Response(status=404, text="404 page not found")

    async def _trouble(self, request: web.Request) -> web.Response | None:
        faults = self.faults
        if faults.hang:
            await asyncio.Event().wait()
        if faults.slow:
            await asyncio.sleep(faults.slow)
        if faults.redirect:
            return web.Response(status=307, headers={"Location": faults.redirect})
        given = request.headers.get("Authorization", "")
        if faults.key and given != f"Bearer {faults.key}":
            words = f"Incorrect API key provided: {given}" if faults.echo_key else "Incorrect API key provided"
            return self._error(request, 401, words)
        if faults.busy > 0:
            faults.busy -= 1
            headers = {"Retry-After": faults.retry_after} if faults.retry_after is not None else {}
            return self._error(request, 429, "Rate limit reached", headers=headers)
        if faults.broken > 0:
            faults.broken -= 1
            return self._error(request, 500, "internal error")
        if faults.not_json:
            return web.Response(text="<html>welcome</html>", content_type="text/html")
        return None

    def _error(
        self, request: web.Request, status: int, words: str, headers: dict[str, str] | None = None
    ) -> web.Response:
        body: dict[str, Any] = (
            {"error": words} if request.path.startswith("/api") else {"error": {"message": words, "code": None}}
        )
        return web.json_response(body, status=status, headers=headers or {})

    def _refusal(self, request: web.Request, body: dict[str, Any], texts: Sequence[str]) -> web.Response | None:
        faults = self.faults
        for name, refused in (
            ("dimensions", faults.reject_dimensions),
            ("encoding_format", faults.reject_encoding_format),
        ):
            if refused and name in body:
                return self._error(request, 400, "bad request" if faults.unnamed else f"unsupported parameter: {name}")
        if faults.poisoned and any(faults.poisoned in text for text in texts):
            return self._error(request, 400, f"cannot embed this: {faults.poisoned}")
        if faults.max_inputs is not None and len(texts) > faults.max_inputs:
            return self._too_many(request, body, texts)
        if faults.max_tokens is not None and max(map(len, texts)) > faults.max_tokens:
            status, words = faults.over_tokens
            return self._error(request, status, words.format(limit=faults.max_tokens))
        if faults.error_body:
            return self._error(request, 200, faults.error_body)
        return None

    def _too_many(self, request: web.Request, body: dict[str, Any], texts: Sequence[str]) -> web.Response | None:
        limit = self.faults.max_inputs
        words = f"batch size is invalid, it should not be larger than {limit}.: input.contents"
        match self.faults.over_limit:
            case "400":
                return self._error(request, 400, words)
            case "413":
                return web.Response(status=413, text="payload too large")
            case "error body":
                return self._error(request, 200, words)
            case "unnamed":
                return self._error(request, 422, "unprocessable")
            case "empty":
                return self._answer(request, body, [])
            case "truncate":
                return self._answer(request, body, self._vectors(body, texts[:limit]))

    def _vectors(self, body: dict[str, Any], texts: Sequence[str]) -> list[list[float]]:
        self._embeds += 1
        width = int(body.get("dimensions") or self.dimension)
        if self.faults.dimension_after and self._embeds > self.faults.dimension_after[0]:
            width = self.faults.dimension_after[1]
        # Not of unit length, as many servers answer; the caller has to normalise.
        rows = (3.0 * ngram_rows(texts, dimension=width, salt=body.get("model", ""))).tolist()
        return [_spoilt(row, self.faults.bad_vector, place) for place, row in enumerate(rows)]

    def _embed(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        texts = _inputs(body)
        refusal = self._refusal(request, body, texts)
        if refusal is not None:
            return refusal
        model = body.get("model", "")
        if model.removesuffix(":latest") not in {m.removesuffix(":latest") for m in self.models}:
            return self._error(request, 404, f'model "{model}" not found, try pulling it first')
        if self.faults.empty_list > 0:
            self.faults.empty_list -= 1
            return self._answer(request, body, [])
        return self._answer(request, body, self._vectors(body, texts))

    def _answer(self, request: web.Request, body: dict[str, Any], rows: list[Any]) -> web.Response:
        if request.path == "/api/embed":
            return _json({"model": body.get("model"), "embeddings": rows})
        asked_float = body.get("encoding_format") == "float"
        as_text = self.faults.base64_always or ("encoding_format" in body and not asked_float)
        data = [
            {"object": "embedding", "index": i, "embedding": _base64(row) if as_text else row}
            for i, row in enumerate(rows)
        ]
        if self.faults.shuffled:
            data.reverse()
        return _json({"object": "list", "data": data, "model": body.get("model"), "usage": {}})

    async def _openai_embeddings(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        return self._embed(request, body)

    async def _ollama_embed(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        if self.faults.old_ollama:
            return web.Response(status=404, text="404 page not found")
        return self._embed(request, body)

    async def _ollama_old(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        return _json({"embedding": self._vectors(body, [body["prompt"]])[0]})

    async def _ollama_tags(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        return _json({"models": [{"name": name, "model": name} for name in self.models]})

    async def _ollama_show(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        if self.faults.no_show:
            return web.Response(status=404, text="404 page not found")
        name = body["model"]
        able = ["embedding"] if name in self.embedding_models else ["completion", "tools"]
        shown: dict[str, Any] = {"model_info": {"general.architecture": "bert"}, "details": {}}
        return _json(shown if self.faults.no_capabilities else {**shown, "capabilities": able})

    async def _openai_models(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        if self.faults.no_model_list:
            return web.Response(status=404, text="not found")
        return _json({"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]})


def _inputs(body: dict[str, Any]) -> list[str]:
    given = body.get("input", [])
    return [given] if isinstance(given, str) else list(given)


def _spoilt(row: list[float], how: BadVector | None, place: int) -> Any:
    match how:
        case "empty":
            return []
        case "short":
            return [1.0, 2.0, 3.0]
        case "ragged":
            return row[: len(row) - place]
        case "zero":
            return [0.0] * len(row)
        case "nan":
            return [*row[:-1], float("nan")]
        case "inf":
            return [*row[:-1], float("inf")]
        case "text":
            return ["x"] * len(row)
        case None:
            return row


def _base64(row: list[float]) -> str:
    return base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode()


def _json(body: object) -> web.Response:
    return web.Response(text=json.dumps(body), content_type="application/json")
