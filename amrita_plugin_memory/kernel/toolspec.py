"""A tool a model may call, described once: its schema is read off a typed function and never written twice.

A tool function takes what it needs positionally (services, caller) and the model's arguments as keyword-only
parameters, annotated ``Annotated[type, Field(description=...)]``; the first paragraph of its docstring is what the
model reads.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from .complaints import first_complaint
from .errors import InvalidInput

_NOISE = ("title",)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Name, description and JSON schema of one tool, and the function behind it."""

    name: str
    description: str
    parameters: dict[str, Any]
    model: type[BaseModel]
    function: Callable[..., Awaitable[Any]]

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them; an explicit null for an optional one counts as absent.

        Raises:
            InvalidInput: one is missing, of another type or out of bounds; the sentence names it. Unknown ones go.

        """
        present = {name: value for name, value in given.items() if value is not None}
        try:
            checked = self.model.model_validate(present)
        except ValidationError as e:
            where, reason = first_complaint(e)
            raise InvalidInput(f"工具 {self.name} 的参数 {'.'.join(where)} 不可用：{reason}") from e
        return {name: getattr(checked, name) for name in self.model.model_fields}


def describe(function: Callable[..., Awaitable[Any]]) -> ToolSpec:
    """Read a tool off its function."""
    given = [p for p in inspect.signature(function).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    hints = _hints(function, [p.name for p in given])
    fields: dict[str, Any] = {
        p.name: (hints[p.name], ... if p.default is inspect.Parameter.empty else p.default) for p in given
    }
    name = function.__name__
    model = create_model(name, __config__=ConfigDict(extra="ignore"), **fields)
    text = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", "")
    return ToolSpec(name, text, _plain(model.model_json_schema()), model, function)


def _hints(function: Callable[..., Any], names: list[str]) -> dict[str, Any]:
    """The types of the model's arguments; those of services may be known to the type checker only."""
    space = {"__annotations__": {name: function.__annotations__[name] for name in names}}
    return get_type_hints(type("Arguments", (), space), vars(inspect.getmodule(function)), include_extras=True)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in the form every endpoint takes: object, properties, required; no titles, no anyOf with null."""
    properties = {name: _property(value) for name, value in schema.get("properties", {}).items()}
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


def _property(schema: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in schema.items() if key not in (*_NOISE, "default", "anyOf")}
    options = [one for one in schema.get("anyOf", []) if one.get("type") != "null"]
    if options:
        plain = {**_property(options[0]), **plain}
    if "items" in plain:
        plain["items"] = _property(plain["items"])
    return plain
