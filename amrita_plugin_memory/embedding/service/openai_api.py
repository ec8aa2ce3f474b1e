"""OpenAI and every server that speaks like it, through the ``openai`` client: ``/embeddings`` and ``/models``.

Requests go through the client's generic ``post``, because its ``embeddings.create`` cannot leave ``encoding_format``
out (it then asks for base64), which is just what some servers reject.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from .faults import Kind, ServiceFault, from_exception, kind_of_status, scrub, seconds_to_wait
from .http import PLACEHOLDER_KEY, Access, client_options, keep_bodies_out_of_logs
from .models import ServedModel
from .quirks import Quirks
from .wire import Ask

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_BUSY_WORDS: Final = re.compile(r"rate.?limit|too many requests|overload|限流|繁忙", re.IGNORECASE)


class OpenAIWire:
    """One OpenAI-compatible server. The client package is imported by the first call, in a thread."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._client: AsyncOpenAI | None = None
        self._making = asyncio.Lock()

    async def open(self) -> None:
        """See the port."""
        await self._ready()

    async def ask(self, ask: Ask, quirks: Quirks) -> object:
        """See the port; ``float`` is asked for, base64 is understood too."""
        body: dict[str, object] = {"model": ask.model, "input": list(ask.texts)}
        if quirks.encoding_format:
            body["encoding_format"] = "float"
        if quirks.dimensions and ask.dimensions:
            body["dimensions"] = ask.dimensions
        client = await self._ready()
        answer = await self._heard(client.post("/embeddings", body=body, cast_to=object), ask.texts)
        return self._rows(answer, ask.texts)

    async def models(self) -> list[ServedModel]:
        """Names from ``/models``; OpenAI's list says nothing about abilities."""
        client = await self._ready()
        answer = await self._heard(client.get("/models", cast_to=object), ())
        items = cast("list[object]", answer) if isinstance(answer, list) else _member(answer, "data")
        if not isinstance(items, list):
            raise self._fault("answer", 200, "没有模型列表")
        names = [_member(item, "id") for item in cast("list[object]", items)]
        return [ServedModel(name) for name in names if isinstance(name, str)]

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    def _rows(self, answer: object, texts: tuple[str, ...]) -> object:
        trouble = _member(answer, "error")
        if trouble:
            raise self._error_body(trouble, texts)
        data = _member(answer, "data")
        if not isinstance(data, list):
            words = _member(answer, "message") or _member(answer, "detail") or "没有 data"
            raise self._fault("answer", 200, words, texts=texts)
        return [_member(item, "embedding") for item in _in_order(cast("list[object]", data))]

    def _error_body(self, trouble: object, texts: tuple[str, ...]) -> ServiceFault:
        words = _member(trouble, "message") or trouble
        code = str(_member(trouble, "code") or _member(trouble, "status") or "")
        kind: Kind = "busy" if _BUSY_WORDS.search(f"{code} {words}") else "answer"
        status = int(code) if code.isdecimal() and 400 <= int(code) < 600 else 200
        return self._fault(kind_of_status(status) if status != 200 else kind, status, words, texts=texts)

    async def _ready(self) -> AsyncOpenAI:
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._make)
            return self._client

    def _make(self) -> AsyncOpenAI:
        package: Any = import_module("openai")
        keep_bodies_out_of_logs()
        client: AsyncOpenAI = package.AsyncOpenAI(
            api_key=PLACEHOLDER_KEY,
            base_url=self._access.endpoint.base,
            max_retries=0,
            http_client=package.DefaultAsyncHttpxClient(**client_options(self._access)),
        )
        return client

    async def _heard(self, call: Awaitable[object], texts: tuple[str, ...]) -> object:
        try:
            return await call
        except ValueError:
            raise self._fault("answer", 200, "不是 JSON") from None
        except Exception as e:  # noqa: BLE001 - a border: the client's errors and the HTTP library's become one
            fault = self._from_client(e, texts)
            # A server's words may repeat texts and keys, and a traceback prints the whole chain: then no cause.
            raise fault from (e if fault.status is None else None)

    def _from_client(self, error: Exception, texts: tuple[str, ...]) -> ServiceFault:
        response: Any = getattr(error, "response", None)
        status = getattr(error, "status_code", None)
        if response is None or not isinstance(status, int):
            return from_exception(error, base=self._access.endpoint.base)
        wait = seconds_to_wait(response.headers.get("retry-after"), now=datetime.now(UTC))
        return self._fault(kind_of_status(status), status, _words(error), texts=texts, retry_after=wait)

    def _fault(
        self,
        kind: Kind,
        status: int,
        words: object,
        *,
        texts: tuple[str, ...] = (),
        retry_after: float | None = None,
    ) -> ServiceFault:
        detail = scrub(words, secrets=self._access.secrets, texts=texts)
        return ServiceFault(
            kind, base=self._access.endpoint.base, status=status, detail=detail, retry_after=retry_after
        )


def _words(error: Exception) -> object:
    body: object = getattr(error, "body", None)
    return _member(body, "message") or _member(body, "detail") or body or getattr(error, "message", "")


def _member(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None


def _in_order(data: list[object]) -> Sequence[object]:
    """By ``index`` where every item has its own, else as sent."""
    places = [_member(item, "index") for item in data]
    if sorted(p for p in places if isinstance(p, int)) != list(range(len(data))):
        return data
    return [item for _, item in sorted(zip(cast("list[int]", places), data, strict=True), key=lambda pair: pair[0])]
