"""List and call: names are matched, arguments checked, the answer made JSON, everybody told who wants to know."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from amrita_plugin_memory.kernel.errors import AmritaMemoryError, Forbidden, InvalidInput, LimitReached
from amrita_plugin_memory.kernel.toolspec import ToolSpec, describe

from . import assets, memory, recall
from .names import dotted, legal, snake
from .policy import OnCall, ToolPolicy

if TYPE_CHECKING:
    from amrita_plugin_memory.amos.facade import Handle

MAX_ANSWER: Final = 100_000  # characters of one result
_PREFIXES: Final = ("memory_", "asset_", "tool_")


class ToolCallResult(dict[str, Any]):
    """``{"ok": true, "data": …}`` or ``{"ok": false, "error": …}``: JSON as it is, its parts also as attributes."""

    @property
    def ok(self) -> bool:
        """True when the tool did what it says."""
        return bool(self["ok"])

    @property
    def data(self) -> Any:
        """What it gave back."""
        return self.get("data")

    @property
    def error(self) -> str | None:
        """One sentence about what went wrong."""
        return self.get("error")


@dataclass(frozen=True, slots=True)
class MemoryTools:
    """The tools for one handle, under the policy of its root."""

    handle: Handle
    policy: ToolPolicy

    def list_tools(self) -> list[dict[str, Any]]:
        """Schemas of the tools that may be called, in the form ``tools=`` of a chat request takes."""
        return [_schema(spec) for spec in specs().values() if self.policy.permits(dotted(spec.name))]

    async def call(self, name: str, args: Mapping[str, Any] | str | None = None) -> ToolCallResult:
        """Call a tool by its name in any spelling, with a mapping or the JSON text a model gave. Never raises."""
        try:
            spec = _found(name)
            given = _arguments(spec, args)
        except AmritaMemoryError as error:
            return await self._told(str(name)[:100], {}, _failed(error))
        if not self.policy.permits(dotted(spec.name)):
            refused = Forbidden(f"工具 {spec.name} 没有开放，请改用其他工具")
            return await self._told(dotted(spec.name), given, _failed(refused))
        return await self._told(dotted(spec.name), given, await self._called(spec, given))

    def set_permission(self, allow: Iterable[str] | None = None, deny: Iterable[str] | None = None) -> None:
        """Say which tools may be called in this root; None lifts a list. Names in any spelling, ``memory.*`` too."""
        self.policy.set(allow, deny)

    def on_call(self, callback: OnCall) -> None:
        """Tell ``callback(name, arguments, result)`` of every call in this root."""
        self.policy.listeners.append(callback)

    async def _called(self, spec: ToolSpec, given: dict[str, Any]) -> ToolCallResult:
        try:
            return _succeeded(await spec.function(self.handle, **given))
        except AmritaMemoryError as error:
            return _failed(error)
        except OSError as error:
            return ToolCallResult(ok=False, error="文件读写失败，请检查磁盘后再试", error_type=type(error).__name__)

    async def _told(self, name: str, given: dict[str, Any], result: ToolCallResult) -> ToolCallResult:
        await self.policy.tell(name, given, dict(result))
        return result


@functools.cache
def specs() -> dict[str, ToolSpec]:
    """Every tool by its legal name."""
    found: Iterable[Callable[..., Awaitable[Any]]] = (
        function
        for module in (recall, memory, assets)
        for name, function in vars(module).items()
        if name.startswith(_PREFIXES) and inspect.iscoroutinefunction(function)
    )
    return {spec.name: spec for spec in map(describe, found)}


def _schema(spec: ToolSpec) -> dict[str, Any]:
    parameters = {**spec.parameters, "additionalProperties": False}
    return {
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": parameters},
    }


def _found(name: object) -> ToolSpec:
    known = specs()
    spec = known.get(legal(name)) if isinstance(name, str) else None
    if spec is None:
        near = difflib.get_close_matches(legal(str(name))[:100], known, n=3, cutoff=0.5)
        hint = f"，是不是 {'、'.join(near)}" if near else f"，可用：{' '.join(known)}"
        raise InvalidInput(f"没有工具 {str(name)[:60]!r}{hint}")
    return spec


def _arguments(spec: ToolSpec, args: Mapping[str, Any] | str | None) -> dict[str, Any]:
    if isinstance(args, str):
        try:
            args = json.loads(args) if args.strip() else {}
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"工具 {spec.name} 的参数不是有效的 JSON，请重新给出") from error
    if args is None:
        args = {}
    if not isinstance(args, Mapping):
        raise InvalidInput(f"工具 {spec.name} 的参数必须是一个 JSON 对象")
    named = {snake(str(key)): value for key, value in args.items()}
    known = spec.model.model_fields
    unknown = [key for key in named if key not in known]
    if unknown:
        offered = f"可用：{'、'.join(known)}" if known else "它没有参数"
        raise InvalidInput(f"工具 {spec.name} 没有参数 {'、'.join(unknown)[:100]}，{offered}")
    return spec.arguments(named)


def _succeeded(value: Any) -> ToolCallResult:
    data = _plain(value)
    if len(json.dumps(data, ensure_ascii=False)) > MAX_ANSWER:
        raise LimitReached(f"结果超过 {MAX_ANSWER} 字，请缩小范围后再试")
    return ToolCallResult(ok=True, data=data)


def _failed(error: AmritaMemoryError) -> ToolCallResult:
    return ToolCallResult(ok=False, error=str(error), error_type=type(error).__name__)


def _plain(value: Any) -> Any:
    """A value as JSON: dataclasses and enums opened, paths and dates as text, odd floats as null."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, int):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)
