"""One call of one tool: arguments checked, the function awaited, whatever comes of it answered as compact JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from amrita_plugin_memory.kernel.errors import AmritaMemoryError, Duplicate
from amrita_plugin_memory.kernel.scope import Caller
from amrita_plugin_memory.kernel.toolspec import ToolSpec

_log = logging.getLogger("amrita_memory.tools")


async def run(tool: ToolSpec, services: Any, caller: Caller, given: Mapping[str, Any]) -> str:
    """Call ``tool`` and answer JSON: ``{"status":"success",…}`` or ``{"status":"error","message":…}``; never raises."""
    try:
        result = await tool.function(services, caller, **tool.arguments(given))
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
