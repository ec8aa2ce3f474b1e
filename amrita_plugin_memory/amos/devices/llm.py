"""A language model behind any OpenAI-compatible endpoint, with usage, timeouts and errors in words."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from amrita_plugin_memory.amos.errors import LLMUnavailableError
from amrita_plugin_memory.kernel.errors import ConfigInvalid, shorten

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion


@dataclass(frozen=True, slots=True)
class _Preset:
    url: str
    model: str
    key: str
    features: tuple[str, ...] = ("chat", "function_calling", "json")


_CACHING: Final = ("chat", "function_calling", "json", "prefix_cache")
PRESETS: Final = {
    "deepseek": _Preset("https://api.deepseek.com", "deepseek-chat", "DEEPSEEK_API_KEY", _CACHING),
    "openai": _Preset("https://api.openai.com/v1", "gpt-4o-mini", "OPENAI_API_KEY"),
    "ollama": _Preset("http://127.0.0.1:11434/v1", "", ""),
    "custom": _Preset("", "", "OPENAI_API_KEY"),
}  # fmt: skip


class LLMConfig(BaseModel):
    """Where the model is and how it is asked. Without ``model`` the endpoint's first one is used."""

    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())

    provider: str = "openai"
    api_key: SecretStr = SecretStr("")
    base_url: str = ""
    model: str = ""
    timeout: float = Field(default=60.0, gt=0, le=3600)
    max_retries: int = Field(default=1, ge=0, le=5)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> LLMConfig:
        """Settings with what the provider's preset fills in.

        Raises:
            ConfigInvalid: an unusable value, or a provider that is unknown and has no ``base_url``.

        """
        try:
            config = cls.model_validate(dict(given))
        except ValidationError as error:
            item = error.errors(include_input=False, include_url=False)[0]
            field_name = ".".join(map(str, item["loc"]))
            raise ConfigInvalid(f"llm_config 的 {field_name} 不可用：{item['msg']}") from error
        name = config.provider.strip().lower()
        preset = PRESETS.get(name, PRESETS["custom"])
        url = config.base_url.strip() or preset.url
        if not url.startswith(("http://", "https://")):
            raise ConfigInvalid(f"llm_config 的 provider {shorten(name)} 需要填写 base_url，以 http(s):// 开头")
        key = config.api_key.get_secret_value() or os.environ.get(preset.key, "") if preset.key else ""
        filled = {"provider": name, "base_url": url.rstrip("/"), "model": config.model.strip() or preset.model}
        return config.model_copy(update={**filled, "api_key": SecretStr(key or config.api_key.get_secret_value())})


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; ``cached`` are those of the prompt that came from the provider's prefix cache."""

    prompt: int = 0
    completion: int = 0
    total: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asks for; ``arguments`` is the JSON text as it came."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatResult:
    """One answer."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish_reason: str = ""


@dataclass(slots=True)
class LLMDevice:
    """Talks to one endpoint; None as configuration is a device that says it is not there."""

    config: LLMConfig | None = None
    _client: AsyncOpenAI | None = field(default=None, repr=False)
    _model: str = ""
    _making: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @property
    def available(self) -> bool:
        """True when an endpoint is configured; whether it answers is another matter."""
        return self.config is not None

    @property
    def features(self) -> tuple[str, ...]:
        """What the endpoint is expected to do."""
        return () if self.config is None else PRESETS.get(self.config.provider, PRESETS["custom"]).features

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        json_only: bool = False,
        **settings: Any,
    ) -> ChatResult:
        """Ask the model.

        Args:
            messages: as ``build_messages`` gives them.
            tools: as ``amos.tools.list_tools()`` gives them.
            json_only: ask for a JSON object as the answer.
            settings: ``model``, ``temperature``, ``max_tokens``, ``tool_choice`` and the like, passed on.

        Raises:
            LLMUnavailableError: not configured, not reachable, too slow, or refusing; one sentence without the key.

        """
        config = self._configured()
        client = await self._connected(config)
        request: dict[str, Any] = {"temperature": config.temperature, "max_tokens": config.max_tokens, **settings}
        request |= {"tools": [dict(tool) for tool in tools]} if tools else {}
        request |= {"response_format": {"type": "json_object"}} if json_only else {}
        request = {key: value for key, value in request.items() if value is not None}
        try:
            async with asyncio.timeout(config.timeout * (config.max_retries + 1) + 1):
                request.setdefault("model", await self._named(client, config))
                request["messages"] = [dict(message) for message in messages]
                answer = cast("ChatCompletion", await client.chat.completions.create(**request))
        except Exception as error:
            raise _unavailable(error, config) from error
        return _read(answer)

    async def ask(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The text of the answer: what the library's injected functions return."""
        return (await self.chat(messages)).content

    async def summarize(self, text: str, instruction: str) -> str:
        """``summarize_fn`` over this device."""
        return await self.ask([{"role": "system", "content": instruction}, {"role": "user", "content": text}])

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _configured(self) -> LLMConfig:
        if self.config is None:
            raise LLMUnavailableError("没有配置大模型，请在 llm_config 里填写 provider、api_key 和 model")
        return self.config

    async def _connected(self, config: LLMConfig) -> AsyncOpenAI:
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(_make_client, config)
            return self._client

    async def _named(self, client: AsyncOpenAI, config: LLMConfig) -> str:
        if not (config.model or self._model):
            found = await client.models.list()
            self._model = min((model.id for model in found.data), default="")
        if not (config.model or self._model):
            raise LLMUnavailableError("大模型服务上没有可用的模型，请在 llm_config 里填写 model")
        return config.model or self._model


def _make_client(config: LLMConfig) -> AsyncOpenAI:
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=config.api_key.get_secret_value() or "none",
        base_url=config.base_url,
        timeout=config.timeout,
        max_retries=config.max_retries,
    )


def _unavailable(error: Exception, config: LLMConfig) -> LLMUnavailableError:
    if isinstance(error, LLMUnavailableError):
        return error
    status = getattr(error, "status_code", None)
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return LLMUnavailableError(f"大模型在 {config.timeout:g} 秒内没有回答，请稍后再试")
    if status in (401, 403):
        return LLMUnavailableError("大模型服务拒绝了 api_key，请检查 llm_config")
    if status == 404:
        return LLMUnavailableError("大模型服务上没有这个模型或地址，请检查 llm_config 的 base_url 和 model")
    if status == 429:
        return LLMUnavailableError("大模型服务说请求太多或余额不足，请稍后再试")
    if isinstance(status, int):
        return LLMUnavailableError(f"大模型服务返回了错误 {status}，请稍后再试或检查 llm_config")
    return LLMUnavailableError("连接不上大模型服务，请检查 llm_config 的 base_url 和网络")


def _read(answer: ChatCompletion) -> ChatResult:
    if not answer.choices:
        raise LLMUnavailableError("大模型没有给出回答，请稍后再试")
    choice = answer.choices[0]
    calls = [call for call in choice.message.tool_calls or () if call.type == "function"]
    return ChatResult(
        content=choice.message.content or "",
        tool_calls=tuple(ToolCall(call.id, call.function.name, call.function.arguments) for call in calls),
        usage=_usage(answer),
        model=answer.model or "",
        finish_reason=choice.finish_reason or "",
    )


def _usage(answer: ChatCompletion) -> Usage:
    used = answer.usage
    if used is None:
        return Usage()
    details = used.prompt_tokens_details
    cached = details.cached_tokens if details is not None else None
    if cached is None:
        extra = (used.model_extra or {}).get("prompt_cache_hit_tokens")  # how DeepSeek says it
        cached = extra if isinstance(extra, int) else 0
    return Usage(used.prompt_tokens or 0, used.completion_tokens or 0, used.total_tokens or 0, cached)
