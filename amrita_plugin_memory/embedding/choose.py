"""The rule of ``EMBEDDING_PROTOCOL``: which embedder a collection gets. Pure: values in, choice out.

``auto`` takes what the collection was built with if that answers; else a service the owner configured; else an
embedded model; else hashed vectors. A collection that has vectors is never moved to another model by an outage:
when nothing better was configured on purpose, its own embedder stays chosen, fails with a sentence, and heals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from amrita_plugin_memory.kernel.errors import ConfigInvalid
from amrita_plugin_memory.settings import EnvSettings

from .ports import HASHED_NOTE, VectorSpace
from .service.endpoint import ServiceProtocol, looks_like, normalise
from .service.models import same_model

ChosenProtocol: TypeAlias = Literal["ollama-embed", "openai", "embedded", "hashed"]


@dataclass(frozen=True, slots=True)
class Probes:
    """What was found out before choosing.

    ``recorded_answers``: the service the collection was built with is there. ``configured``: the protocol that the
    configured address speaks, None when it does not answer. ``packages``: installed embedded models, best first.
    """

    packages: tuple[str, ...] = ()
    recorded_answers: bool = False
    configured: ServiceProtocol | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What is used, why, and whether it differs from what the collection was built with.

    ``flips`` is True only when the owner's own configuration asks for another model: the caller must then follow
    EMBED_MISMATCH_POLICY before it reads or writes a vector. ``own_address``: the address is the configured one, so
    the key may be shown to it. ``sure`` is False when the protocol was guessed, because nothing answered there yet.
    ``reason`` and ``hint`` are sentences for a person.
    """

    protocol: ChosenProtocol
    package: str = ""
    model: str = ""
    base_url: str = ""
    own_address: bool = True
    sure: bool = True
    flips: bool = False
    reason: str = ""
    hint: str = ""


def decide(settings: EnvSettings, recorded: VectorSpace | None, probes: Probes) -> Choice:
    """Choose; the result depends on nothing else than the three arguments."""
    protocol = settings.embedding_proctol
    if protocol == "embedded":
        choice = _embedded(probes, recorded, reason="按 EMBEDDING_PROTOCOL=embedded 使用内置嵌入模型")
    elif protocol != "auto":
        choice = _configured(settings, protocol, reason=f"按 EMBEDDING_PROTOCOL={protocol} 使用配置的嵌入服务")
    elif recorded is not None:
        return _for_recorded(settings, recorded, probes)
    elif settings.service_is_configured:
        choice = _configured(settings, probes.configured or guess(settings), reason="使用 .env 里配置的嵌入服务")
        choice = replace(choice, sure=probes.configured is not None)
    else:
        choice = _embedded(probes, None, reason="没有配置嵌入服务，使用内置嵌入模型")
    return replace(choice, flips=recorded is not None and differs(choice, recorded))


def guess(settings: EnvSettings) -> ServiceProtocol:
    """The protocol an address looks like, for when nothing answers there."""
    return looks_like(settings.embedding_model_url, has_key=bool(settings.embedding_model_api_key.get_secret_value()))


def differs(choice: Choice, recorded: VectorSpace) -> bool:
    """True when the choice is surely another space than the recorded one; spellings of one address do not count."""
    if choice.protocol != recorded.protocol:
        return True
    if choice.protocol == "embedded":
        return choice.package != recorded.package.partition("==")[0]
    if choice.protocol == "hashed":
        return False
    named = [name for name in (recorded.model, recorded.resolved_model) if name not in ("", "auto")]
    another = choice.model != "auto" and bool(named) and not any(same_model(choice.model, name) for name in named)
    return another or not same_address(choice.base_url, recorded.base_url, choice.protocol)


def same_address(one: str, other: str, protocol: ServiceProtocol) -> bool:
    """True when two spellings name the same service; an unusable address equals nothing but itself."""
    try:
        return normalise(one, protocol).identity == normalise(other, protocol).identity
    except ConfigInvalid:
        return one == other


def _for_recorded(settings: EnvSettings, recorded: VectorSpace, probes: Probes) -> Choice:
    stay = _as_recorded(settings, recorded, probes)
    if settings.service_is_configured:
        other = _configured(settings, probes.configured or guess(settings), reason="使用 .env 里配置的嵌入服务")
        if differs(other, recorded):
            if not _there(recorded, probes) and probes.configured:
                return replace(other, flips=True, reason="记忆库所用的嵌入模型没有应答，改用 .env 里配置的嵌入服务")
            return replace(stay, hint="要换成 .env 里配置的嵌入服务，请运行 ambot memory reindex")
    elif recorded.protocol == "hashed" and probes.packages:
        return replace(stay, hint="已装有内置嵌入模型；要改为按意思检索，请运行 ambot memory reindex")
    return stay


def _there(recorded: VectorSpace, probes: Probes) -> bool:
    if recorded.protocol == "embedded":
        return recorded.package.partition("==")[0] in probes.packages
    return recorded.protocol == "hashed" or probes.recorded_answers


def _as_recorded(settings: EnvSettings, recorded: VectorSpace, probes: Probes) -> Choice:
    there = _there(recorded, probes)
    reason = "沿用记忆库建立时的嵌入模型" + ("" if there else "（它现在没有应答，恢复之前只按字词检索）")
    if recorded.protocol == "hashed":
        return Choice("hashed", reason=reason, hint=HASHED_NOTE)
    if recorded.protocol == "ollama-embed" or recorded.protocol == "openai":
        mine = same_address(recorded.base_url, settings.embedding_model_url, recorded.protocol)
        return Choice(
            recorded.protocol, model=recorded.model, base_url=recorded.base_url, own_address=mine, reason=reason
        )
    if recorded.protocol == "embedded":
        return Choice("embedded", package=recorded.package.partition("==")[0], reason=reason)
    return replace(
        _embedded(probes, None, reason=f"记忆库所用的嵌入方式 {recorded.protocol} 无法识别，改用内置嵌入模型"),
        flips=True,
    )


def _configured(settings: EnvSettings, protocol: ServiceProtocol, *, reason: str) -> Choice:
    return Choice(protocol, model=settings.embedding_model_name, base_url=settings.embedding_model_url, reason=reason)


def _embedded(probes: Probes, recorded: VectorSpace | None, *, reason: str) -> Choice:
    built_with = recorded.package.partition("==")[0] if recorded and recorded.protocol == "embedded" else ""
    if built_with:
        return Choice("embedded", package=built_with, reason=reason)
    if probes.packages:
        return Choice("embedded", package=probes.packages[0], reason=reason)
    return Choice("hashed", reason="没有装内置嵌入模型，用字符散列代替", hint=HASHED_NOTE)
