"""Devices of a root: a language model and the web, and what happens when one is missing.

    LLMDevice(LLMConfig.of({...}))    any OpenAI-compatible endpoint; presets deepseek, openai, ollama
    HttpDevice(broker)                the web, through the sandbox room's guarded broker
    negotiate(required, offered)      what a root needs and this machine has (pure): run on, but say what is missing

With the broker, ``llm.py`` is the only file of the library that knows an HTTP client.
"""

from .capabilities import CapabilityCheck, negotiate
from .http import HttpDevice, HttpRequestConfig, HttpResult
from .llm import ChatResult, LLMConfig, LLMDevice, ToolCall, Usage

__all__ = [
    "CapabilityCheck",
    "ChatResult",
    "HttpDevice",
    "HttpRequestConfig",
    "HttpResult",
    "LLMConfig",
    "LLMDevice",
    "ToolCall",
    "Usage",
    "negotiate",
]
