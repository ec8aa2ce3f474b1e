"""From addresses and keys to a service embedder, and the short question whether a service is there at all."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from amrita_plugin_memory.embedding.ports import VectorSpace
from amrita_plugin_memory.kernel.clock import Clock

from .endpoint import Endpoint, ServiceProtocol
from .http import Access, client_options
from .ollama import OllamaWire
from .openai_api import OpenAIWire
from .quirks import Quirks
from .service import ServiceEmbedder, ServiceSpec, Sleep

if TYPE_CHECKING:
    import httpx

_THERE: Final[dict[ServiceProtocol, frozenset[int]]] = {
    "ollama-embed": frozenset({401, 403, 429}),
    "openai": frozenset({401, 403, 404, 405, 429}),  # many have no list of models
}
_LISTS: Final[dict[ServiceProtocol, tuple[str, str]]] = {
    "ollama-embed": ("/api/tags", "models"),
    "openai": ("/models", "data"),
}


def service_embedder(
    access: Access, spec: ServiceSpec, clock: Clock, *, sleep: Sleep = asyncio.sleep
) -> ServiceEmbedder:
    """The embedder of a service; opens nothing yet."""
    wire = OllamaWire(access) if access.endpoint.protocol == "ollama-embed" else OpenAIWire(access)
    return ServiceEmbedder(wire, spec, clock=clock, sleep=sleep)


def first_way(protocol: ServiceProtocol, *, batch: int, dimensions: int) -> Quirks:
    """How to ask an endpoint that has taught us nothing; what a protocol does not have counts as given up."""
    if protocol == "openai":
        return Quirks(batch=batch, dimensions=dimensions > 0, old_route=True)
    return Quirks(batch=batch, dimensions=dimensions > 0, encoding_format=False)


def service_space(endpoint: Endpoint, *, model: str, base_url: str, recorded: VectorSpace | None) -> VectorSpace:
    """The space with the raw values, and where a collection recorded it, the model that really answered."""
    resolved = recorded.resolved_model if recorded else ""
    return VectorSpace(protocol=endpoint.protocol, model=model, base_url=base_url, resolved_model=resolved)


async def answers(access: Access) -> bool:
    """True when something at the address speaks the endpoint's protocol, within the access's timeout."""
    # Plain HTTP: importing the client packages would take longer than the question may.
    client = await asyncio.to_thread(_plain_client, access)
    try:
        async with asyncio.timeout(access.timeout):
            return _speaks(await _listing(client, access.endpoint), access.endpoint.protocol)
    except (TimeoutError, OSError):
        return False
    finally:
        await client.aclose()


async def _listing(client: httpx.AsyncClient, endpoint: Endpoint) -> httpx.Response:
    try:
        return await client.get(endpoint.base + _LISTS[endpoint.protocol][0])
    except Exception as e:
        raise OSError("no answer") from e


def _speaks(response: httpx.Response, protocol: ServiceProtocol) -> bool:
    if response.status_code != 200:
        return response.status_code in _THERE[protocol]
    try:
        body: object = response.json()
    except ValueError:
        return False
    name = _LISTS[protocol][1]
    return isinstance(body, dict) and isinstance(cast("dict[str, object]", body).get(name), list)


def _plain_client(access: Access) -> httpx.AsyncClient:
    package: Any = import_module("httpx")
    client: httpx.AsyncClient = package.AsyncClient(**client_options(access))
    return client
