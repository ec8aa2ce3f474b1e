"""One call of one tool: arguments checked, the function awaited, whatever comes of it answered as compact JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from .errors import AmritaMemoryError, Duplicate
from .toolspec import ToolSpec

_log = logging.getLogger("amrita_memory.tools")


async def run(tool: ToolSpec, *context: Any, given: Mapping[str, Any]) -> str:
    """Call ``tool`` with its context (services, caller) and answer JSON; never raises.

    ``{"status":"success",…}``, or ``{"status":"error","message":…}`` with the cause in one sentence.
    """
    try:
        result = await tool.function(*context, **tool.arguments(given))
    except Duplicate as e:
        return answer({"status": "error", "message": str(e), "id": e.id})
    except AmritaMemoryError as e:
        _log.info("[Memory] 工具 %s 未执行：%s", tool.name, e)
        return answer({"status": "error", "message": str(e)})
    except Exception:  # noqa: BLE001 the border to the model: whatever went wrong must not reach the chat as a traceback
        _log.exception("[Memory] 工具 %s 出错", tool.name)
        return answer({"status": "error", "message": f"工具 {tool.name} 内部出错，原因已写入日志，请稍后再试"})
    return answer({"status": "success", **result})


def answer(value: Mapping[str, Any]) -> str:
    """Compact JSON: no blanks, no escapes of Chinese, empty and absent values left out."""
    slim = {key: item for key, item in value.items() if item not in (None, "")}
    return json.dumps(slim, ensure_ascii=False, separators=(",", ":"))
