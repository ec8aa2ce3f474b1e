"""From settings to an embedder: probe, choose once, build. The door of this room."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from amrita_plugin_memory.kernel.clock import Clock, SystemClock
from amrita_plugin_memory.kernel.errors import ConfigInvalid, EmbeddingUnavailable
from amrita_plugin_memory.settings import EnvSettings

from .cached import QueryCache
from .choose import Choice, Probes, decide, guess, same_address
from .embedded import EmbeddedEmbedder, installed_packages, package_named
from .hashed import HashedEmbedder
from .ports import Embedder, EmbedderClosed, Matrix, Purpose, VectorSpace
from .service.connect import answers, first_way, service_embedder, service_space
from .service.endpoint import ServiceProtocol, normalise
from .service.http import Access
from .service.service import ServiceSpec

PROBE_SECONDS: Final = 3.0
SECOND_LOOK_SECONDS: Final = 15.0
_log = logging.getLogger("amrita_memory.embedding")


class ChosenEmbedder:
    """An embedder that chooses on first use, in its caller's time, and then stays with it.

    Making one opens nothing and blocks nothing; ``choice`` tells what was chosen and why, ``space`` what to record.
    """

    def __init__(self, settings: EnvSettings, recorded: VectorSpace | None, clock: Clock) -> None:
        self._settings = settings
        self._recorded = recorded
        self._clock = clock
        self._choosing = asyncio.Lock()
        self._choice: Choice | None = None
        self._inner: Embedder | None = None
        self._closed = False
        self._chosen_at = 0.0

    async def choice(self) -> Choice:
        """What is used and why; probes the services for at most a few seconds the first time."""
        await self._ready()
        assert self._choice is not None
        return self._choice

    async def embed(self, texts: Sequence[str], *, purpose: Purpose, deadline: float | None = None) -> Matrix:
        """See the port."""
        return await (await self._ready()).embed(texts, purpose=purpose, deadline=deadline)

    async def space(self) -> VectorSpace:
        """See the port."""
        return await (await self._ready()).space()

    async def aclose(self) -> None:
        """Close whatever was chosen."""
        self._closed = True
        if self._inner is not None:
            await self._inner.aclose()

    async def _ready(self) -> Embedder:
        async with self._choosing:
            if self._closed:
                raise EmbedderClosed
            if self._inner is None or self._doubtful():
                await self._choose()
            assert self._inner is not None
            return self._inner

    def _doubtful(self) -> bool:
        """A guessed protocol is looked at again now and then, until the address answers; nothing is recorded before."""
        guessed = self._choice is not None and not self._choice.sure
        return guessed and self._clock.monotonic() >= self._chosen_at + SECOND_LOOK_SECONDS

    async def _choose(self) -> None:
        choice = decide(self._settings, self._recorded, await probe(self._settings, self._recorded))
        self._chosen_at = self._clock.monotonic()
        before, self._choice = self._choice, choice
        if before is not None and before.protocol == choice.protocol and self._inner is not None:
            return
        if self._inner is not None:
            await self._inner.aclose()
        self._inner = build_chosen(choice, self._settings, recorded=self._recorded, clock=self._clock)
        _log.info("嵌入方式：%s（%s）", choice.protocol, choice.reason)
        if choice.hint:
            _log.warning(choice.hint)


def build_embedder(
    settings: EnvSettings, *, recorded: VectorSpace | None = None, clock: Clock | None = None
) -> ChosenEmbedder:
    """The embedder for a collection; ``recorded`` is the space its vectors were made in, None when it has none.

    Call it again with ``recorded=None`` to get what a rebuild of the collection would use.
    """
    return ChosenEmbedder(settings, recorded, clock or SystemClock())


def build_chosen(choice: Choice, settings: EnvSettings, *, recorded: VectorSpace | None, clock: Clock) -> Embedder:
    """The embedder of a choice that was made.

    Raises:
        ConfigInvalid: an address that cannot be used.
        EmbeddingUnavailable: the collection was built with a package nobody knows.

    """
    if choice.protocol == "hashed":
        return HashedEmbedder()
    if choice.protocol == "embedded":
        package = package_named(choice.package)
        if package is None:
            raise EmbeddingUnavailable(
                f"记忆库是用 {choice.package[:60] or '未知的内置模型'} 建的，本版本不认识，请运行 ambot memory reindex"
            )
        return QueryCache(EmbeddedEmbedder(package, max_chars=settings.embedding_max_chars))
    return QueryCache(
        _service(choice, choice.protocol, settings, recorded=None if choice.flips else recorded, clock=clock)
    )


def _service(
    choice: Choice, protocol: ServiceProtocol, settings: EnvSettings, *, recorded: VectorSpace | None, clock: Clock
) -> Embedder:
    access = _access(settings, choice.base_url, protocol, with_key=choice.own_address)
    spec = ServiceSpec(
        base=access.endpoint.base,
        space=service_space(access.endpoint, model=choice.model, base_url=choice.base_url, recorded=recorded),
        start=first_way(protocol, batch=settings.embedding_batch_size, dimensions=settings.embedding_dimensions),
        max_chars=settings.embedding_max_chars,
        timeout=settings.embedding_timeout,
        dimensions=settings.embedding_dimensions,
        pinned=recorded is not None,
    )
    return service_embedder(access, spec, clock)


def _access(settings: EnvSettings, url: str, protocol: ServiceProtocol, *, with_key: bool) -> Access:
    # The key belongs to the configured address; another address that a collection recorded must not see it.
    key = settings.embedding_model_api_key.get_secret_value().strip() if with_key else ""
    return Access(normalise(url, protocol), key, settings.embedding_timeout)


async def probe(settings: EnvSettings, recorded: VectorSpace | None) -> Probes:
    """Find out what ``auto`` needs to know; asks only what matters, all at once, for PROBE_SECONDS at most."""
    packages = await asyncio.to_thread(installed_packages)
    if settings.embedding_proctol != "auto":
        return Probes(packages=packages)
    answers, configured = await asyncio.gather(_recorded_answers(settings, recorded), _configured(settings))
    return Probes(packages=packages, recorded_answers=answers, configured=configured)


async def _recorded_answers(settings: EnvSettings, recorded: VectorSpace | None) -> bool:
    if recorded is None or not (recorded.protocol == "ollama-embed" or recorded.protocol == "openai"):
        return False
    mine = same_address(recorded.base_url, settings.embedding_model_url, recorded.protocol)
    return await _answers(settings, recorded.base_url, recorded.protocol, with_key=mine)


async def _configured(settings: EnvSettings) -> ServiceProtocol | None:
    """The protocol the configured address speaks; where it speaks both, the one the address looks like."""
    if not settings.service_is_configured:
        return None
    first: ServiceProtocol = guess(settings)
    second: ServiceProtocol = "openai" if first == "ollama-embed" else "ollama-embed"
    url = settings.embedding_model_url
    likely, other = await asyncio.gather(
        _answers(settings, url, first, with_key=True), _answers(settings, url, second, with_key=True)
    )
    return first if likely else second if other else None


async def _answers(settings: EnvSettings, url: str, protocol: ServiceProtocol, *, with_key: bool) -> bool:
    try:
        access = _access(settings, url, protocol, with_key=with_key)
    except ConfigInvalid:
        return False
    return await answers(replace(access, timeout=PROBE_SECONDS))
