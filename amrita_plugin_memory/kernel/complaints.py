"""Pydantic's complaints in Chinese: one table for tool arguments, `.env` and `config.toml`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

_REASONS: Final[dict[str, str]] = {
    "missing": "缺少这个参数",
    "string_type": "应为文本",
    "string_too_short": "至少要 {min_length} 个字",
    "string_too_long": "最多 {max_length} 个字",
    "int_type": "应为整数",
    "int_parsing": "应为整数",
    "int_from_float": "应为整数",
    "float_type": "应为数字",
    "float_parsing": "应为数字",
    "finite_number": "应为有限的数字",
    "bool_type": "应为 true 或 false",
    "bool_parsing": "应为 true 或 false",
    "less_than": "必须小于 {lt}",
    "less_than_equal": "不能大于 {le}",
    "greater_than": "必须大于 {gt}",
    "greater_than_equal": "不能小于 {ge}",
    "literal_error": "只能是 {choices} 之一",
    "enum": "只能是 {choices} 之一",
    "list_type": "应为列表",
    "too_short": "至少要 {min_length} 项",
    "too_long": "最多 {max_length} 项",
    "dict_type": "应为键值对象",
    "model_type": "应为键值对象",
}
_OTHERWISE: Final = "值或格式不对，请照说明改写"
_CHOICE: Final = re.compile(r"'([^']*)'")


def first_complaint(error: ValidationError) -> tuple[tuple[str, ...], str]:
    """Where and why of the first complaint, without the value (it may be a secret); where is empty for the whole."""
    item = error.errors(include_input=False, include_url=False)[0]
    return tuple(str(part) for part in item["loc"]), _reason(item["type"], item.get("ctx", {}))


def _reason(kind: str, context: Mapping[str, Any]) -> str:
    choices = "、".join(_CHOICE.findall(str(context.get("expected", ""))))
    return _REASONS.get(kind, _OTHERWISE).format_map({**context, "choices": choices})
