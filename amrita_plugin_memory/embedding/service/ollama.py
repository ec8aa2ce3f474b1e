"""Ollama through its own client: ``/api/embed`` (before 0.3 ``/api/embeddings``), ``/api/tags``, ``/api/show``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from .faults import ServiceFault, from_exception, kind_of_status, scrub, seconds_to_wait
from .http import Access, client_options
from .models import ServedModel, embeds
from .quirks import Quirks
from .wire import Ask

if TYPE_CHECKING:
    from ollama import AsyncClient

_T = TypeVar("_T")
_ASKED_ABOUT: Final = 12  # models of which /api/show is asked


class OllamaWire:
    """One Ollama server. The client package is imported by the first call, in a thread (it takes over a second)."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._client: AsyncClient | None = None
        self._making = asyncio.Lock()

    async def open(self) -> None:
        """See the port."""
        await self._ready()

    async def ask(self, ask: Ask, quirks: Quirks) -> object:
        """See the port; the old route takes one text a call."""
        client = await self._ready()
        if quirks.old_route:
            return [await self._one(client, text, ask) for text in ask.texts]
        wish = ask.dimensions if quirks.dimensions and ask.dimensions else None
        answer = await self._heard(client.embed(model=ask.model, input=list(ask.texts), dimensions=wish), ask.texts)
        return answer.embeddings

    async def models(self) -> list[ServedModel]:
        """Names from ``/api/tags``, abilities from ``/api/show`` for the likeliest dozen."""
        client = await self._ready()
        listed = await self._heard(client.list(), ())
        plain = [ServedModel(model.model) for model in listed.models if model.model]
        plain.sort(key=lambda model: (not embeds(model), model.name))
        asked = await asyncio.gather(*(self._able(client, model) for model in plain[:_ASKED_ABOUT]))
        return [*asked, *plain[_ASKED_ABOUT:]]

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await cast("Any", self._client).close()  # the type stubs of ollama 0.5 do not know it

    async def _one(self, client: AsyncClient, text: str, ask: Ask) -> object:
        return (await self._heard(client.embeddings(model=ask.model, prompt=text), (text,))).embedding

    async def _able(self, client: AsyncClient, model: ServedModel) -> ServedModel:
        try:
            shown = await self._heard(client.show(model.name), ())
        except ServiceFault:
            return model  # an old server, or one that cannot describe its model: the name must do
        return ServedModel(model.name, None if shown.capabilities is None else "embedding" in shown.capabilities)

    async def _ready(self) -> AsyncClient:
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._make)
            return self._client

    def _make(self) -> AsyncClient:
        make: type[AsyncClient] = import_module("ollama").AsyncClient
        return make(host=self._access.endpoint.base, **client_options(self._access))

    async def _heard(self, call: Awaitable[_T], texts: tuple[str, ...]) -> _T:
        try:
            return await call
        except (ValueError, TypeError, AttributeError) as e:
            # Not JSON, or JSON that is no answer: pydantic and json errors are ValueErrors, a list is a TypeError.
            # Its words may repeat texts and keys, and a traceback prints the whole chain: hence no cause.
            raise self._unreadable(e, texts) from None
        except Exception as e:  # noqa: BLE001 - a border: the client's errors and the HTTP library's become one
            fault = self._fault(e, texts)
            raise fault from (e if fault.status is None else None)

    def _unreadable(self, error: Exception, texts: tuple[str, ...]) -> ServiceFault:
        words = _error_words(error)
        detail = scrub(words, secrets=self._access.secrets, texts=texts) if words else "不是 Ollama 的应答格式"
        return ServiceFault("answer", base=self._access.endpoint.base, status=200, detail=detail)

    def _fault(self, error: Exception, texts: tuple[str, ...]) -> ServiceFault:
        base = self._access.endpoint.base
        status = getattr(error, "status_code", None)
        if not isinstance(status, int) or status < 0:
            return from_exception(error, base=base)
        # The client keeps the words but not the headers; the HTTP error it was made from still has them.
        response: Any = getattr(error.__context__, "response", None)
        header = response.headers.get("retry-after") if response is not None else None
        return ServiceFault(
            kind_of_status(status),
            base=base,
            status=status,
            detail=scrub(getattr(error, "error", ""), secrets=self._access.secrets, texts=texts),
            retry_after=seconds_to_wait(header, now=datetime.now(UTC)),
        )


def _error_words(error: Exception) -> str:
    """The ``error`` of a 200 answer, which the client has already rejected for its shape."""
    listing: Any = getattr(error, "errors", None)
    if not callable(listing):
        return ""
    for item in cast("list[dict[str, object]]", listing()):
        body = item.get("input")
        if isinstance(body, dict) and "error" in body:
            return str(cast("dict[str, object]", body)["error"])
    return ""
