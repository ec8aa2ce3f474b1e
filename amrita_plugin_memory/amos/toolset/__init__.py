"""The AI tool set: every verb a model may use, as function-calling schemas and one way to call them.

    MemoryTools(handle, policy).list_tools()          schemas in the OpenAI form, legal names (``memory_search``)
    await MemoryTools(handle, policy).call(name, args) JSON, never an exception: {"ok", "data"} or {"ok", "error"}
    ToolPolicy                                         what is allowed, and who is told of each call

A tool is a typed function in ``memory.py``, ``recall.py`` or ``assets.py``; its schema is read off it and never written
twice. The user a tool works for is the handle's and never an argument.
"""

from .policy import ToolPolicy
from .service import MemoryTools, ToolCallResult

__all__ = ["MemoryTools", "ToolCallResult", "ToolPolicy"]
