"""What a run may be given and what it may give back. Pure: values in, values out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias, cast

from amrita_plugin_memory.amos.errors import InvalidAssetError, SandboxLimit, ToolResultError
from amrita_plugin_memory.kernel.errors import InvalidInput

EngineName: TypeAlias = Literal["auto", "monty", "process", "off"]

MAX_SOURCE: Final = 64 << 10  # bytes
MAX_PARAMS: Final = 64 << 10  # bytes of JSON
MAX_RESULT: Final = 512 << 10  # bytes of JSON
MAX_OUTPUT: Final = 64 << 10  # bytes printed
MAX_DEPTH: Final = 64
MAX_MESSAGE: Final = 2000  # characters of an error that came out of the code
MAX_TIMEOUT: Final = 60.0  # seconds
_NAMES: Final = {  # other spellings of settings
    "allow_hosts": "hosts", "allowHosts": "hosts", "allow_ports": "ports", "allowNetwork": "allow_network",
    "memoryLimitMB": "memory_mb", "memory_limit_mb": "memory_mb", "envWhitelist": "env_whitelist",
}  # fmt: skip
_PATH: Final = re.compile(r"(?<![\w.:/])/(?:[\w.+@-]+/)+[\w.+@-]+")


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """How tools are run.

    ``engine``: "monty", the default; "process", a CPython child that only runs on Linux; "auto", monty and, for code
    that monty refuses before running any of it, process; "off", nothing runs. ``hosts`` are globs, and the network is
    closed while ``allow_network`` is False or there are none. ``env_whitelist`` are globs over variable names, which
    the root's manifest may narrow. ``require_os_layer`` refuses to run where the kernel cannot confine the workers.
    """

    engine: EngineName = "monty"
    timeout: float = 5.0
    memory_mb: int = 64
    allow_network: bool = False
    hosts: tuple[str, ...] = ()
    ports: frozenset[int] = frozenset((80, 443))
    env_whitelist: tuple[str, ...] = ()
    max_processes: int = 2
    queue_timeout: float = 10.0
    require_os_layer: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SandboxOptions:
        """Options from the mapping ``AMOS.create(sandbox=…)`` takes, where ``timeout`` is in milliseconds.

        Raises:
            InvalidInput: an unknown key or an unusable value.

        """
        named = {_NAMES.get(key, key): value for key, value in given.items()}
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(named) - known):
            raise InvalidInput(f"sandbox 没有设置 {'、'.join(unknown)}，可用：{' '.join(sorted(known))}")
        try:
            if "timeout" in named:
                named["timeout"] = float(named["timeout"]) / 1000
            for key in ("hosts", "env_whitelist"):
                if key in named:
                    named[key] = _strings(named[key])
            if "ports" in named:
                named["ports"] = frozenset(int(port) for port in named["ports"])
            return cls(**named)
        except (TypeError, ValueError) as error:
            raise InvalidInput("sandbox 的设置里有类型不对的值，请检查") from error

    def __post_init__(self) -> None:
        if self.engine not in ("auto", "monty", "process", "off"):
            raise InvalidInput("沙箱引擎只能是 auto、monty、process 或 off")
        if not 0 < self.timeout <= MAX_TIMEOUT or not 16 <= self.memory_mb <= 1024 or self.max_processes < 1:
            raise InvalidInput("沙箱的时限须在 60 秒内，内存须在 16 到 1024 MB 之间，进程数至少为 1")


@dataclass(frozen=True, slots=True)
class Job:
    """One run as an engine takes it: gated source, parameters as JSON, seconds, and names bound to secrets."""

    source: str
    params: str
    timeout: float
    memory_mb: int
    bindings: dict[str, str]


@dataclass(frozen=True, slots=True)
class Finished:
    """What an engine gives back: the result as JSON text, and what was printed."""

    result: str
    output: str


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError
    return tuple(str(item) for item in cast("Iterable[object]", value))


def gate_source(source: object) -> str:
    """The source, when it is text of an acceptable size.

    Raises:
        InvalidAssetError: no text, not encodable, or with NUL in it.
        SandboxLimit: more than `MAX_SOURCE` bytes.

    """
    if not isinstance(source, str):
        raise InvalidAssetError("工具代码必须是文字")
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        raise InvalidAssetError("工具代码含有不成对的代理字符，请删除") from error
    if "\0" in source:
        raise InvalidAssetError("工具代码含有 NUL 字符，请删除")
    if size > MAX_SOURCE:
        raise SandboxLimit(f"工具代码超过 {MAX_SOURCE // 1024} KiB 的上限，请精简")
    return source


def gate_params(params: object) -> str:
    """Parameters as JSON text, a copy that shares nothing with the caller's object.

    Raises:
        InvalidInput: not a JSON object.
        SandboxLimit: more than `MAX_PARAMS` bytes.

    """
    if not isinstance(params, dict):
        raise InvalidInput("工具参数必须是一个对象")
    try:
        text = json.dumps(params, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("工具参数里有不能写成 JSON 的值，请检查") from error
    if len(text) > MAX_PARAMS:
        raise SandboxLimit(f"工具参数超过 {MAX_PARAMS // 1024} KiB 的上限，请精简")
    return text


def read_result(text: object) -> Any:
    """The value of a result as it came out of a sandbox.

    Raises:
        ToolResultError: not JSON, NaN, too big, too deep, or with text that cannot be encoded.

    """
    if not isinstance(text, str) or len(text) > MAX_RESULT:
        raise ToolResultError(f"工具返回的内容超过 {MAX_RESULT // 1024} KiB 的上限，请只返回需要的部分")
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ToolResultError("工具的返回值不是有效的 JSON，请只返回字典、列表、文字、数字、布尔或 None") from error
    _check(value)
    return value


def map_text(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_text(item, change) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {change(key): map_text(item, change) for key, item in cast("dict[str, Any]", value).items()}
    return value


def clean_message(text: str) -> str:
    """An error text that came out of code: bounded, printable, without paths of this machine."""
    short = text[: MAX_MESSAGE * 2].encode("utf-8", "replace").decode()
    short = "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in short)
    return _PATH.sub("…", short)[:MAX_MESSAGE]


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _check(value: Any) -> None:
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ToolResultError(f"工具的返回值嵌套超过 {MAX_DEPTH} 层，请展平")
        if isinstance(item, str):
            _check_text(item)
        elif isinstance(item, list):
            waiting += [(inner, depth + 1) for inner in cast("list[Any]", item)]
        elif isinstance(item, dict):
            pairs = cast("dict[str, Any]", item)
            waiting += [(inner, depth + 1) for inner in (*pairs, *pairs.values())]
        elif isinstance(item, float) and (item != item or abs(item) == float("inf")):
            raise ToolResultError("工具的返回值里有无穷大，JSON 写不出来")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolResultError("工具的返回值里有不成对的代理字符，请检查编码") from error
