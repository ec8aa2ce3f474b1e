"""What one chat request says: its prompt, the last thing the user said, the tools, the results of this turn.

Pure: values in, values out.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel, Field

Data: TypeAlias = dict[str, Any]

_MEMO: Final = re.compile(r"<MEMO\b[^>]*>(.*?)</MEMO>", re.DOTALL)
# The host prefixes what people say: [群主][2026-11-30 …][张三（10001）]说:内容
_SPOKEN: Final = re.compile(r"^.*?[)）]\]?\s*说[:：]", re.DOTALL)


class Function(BaseModel):
    """The name (and, in a call, the JSON text of the arguments) of a tool."""

    name: str = ""
    arguments: str | None = None


class ToolCall(BaseModel):
    """A call in an assistant message, or an offered tool (without id)."""

    id: str = ""
    function: Function = Field(default_factory=Function)


class Message(BaseModel):
    """One message of a chat completion request."""

    role: str = ""
    content: str | list[Data] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str = ""

    @property
    def text(self) -> str:
        """The content as text; pictures and the like are left out."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    """Whether a last chunk with the token numbers is wanted."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """The body of `POST /v1/chat/completions`, as far as the script reads it."""

    messages: list[Message] = Field(default_factory=list[Message])
    tools: list[ToolCall] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One request, read. ``results`` are (tool, raw result) since the user last spoke, oldest first."""

    system: str
    said: str
    tools: tuple[str, ...] = ()
    rounds: int = 0
    results: tuple[tuple[str, str], ...] = ()

    @property
    def memo(self) -> str | None:
        """The text of the memo block in the prompt; None when there is none."""
        found = _MEMO.search(self.system)
        return found[1].strip() if found else None

    def result_of(self, tool: str) -> str | None:
        """The last result of this tool in this turn."""
        return next((text for name, text in reversed(self.results) if name == tool), None)


def read(request: ChatRequest) -> Reading:
    """Read a chat completion request."""
    messages = request.messages
    last = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
    turn = messages[last + 1 :]
    names = {call.id: call.function.name for message in turn for call in message.tool_calls or ()}
    return Reading(
        system="\n".join(m.text for m in messages if m.role == "system"),
        said=spoken(messages[last].text) if last >= 0 else "",
        tools=tuple(tool.function.name for tool in request.tools or ()),
        rounds=sum(1 for m in turn if m.role == "assistant" and m.tool_calls),
        results=tuple((names.get(m.tool_call_id, ""), m.text) for m in turn if m.role == "tool"),
    )


def spoken(text: str) -> str:
    """What the person really typed, without the host's prefix and a leading mention."""
    return re.sub(r"^\s*@\S+\s*", "", _SPOKEN.sub("", text, count=1)).strip()


def as_object(text: str | None) -> Data:
    """A tool result as a JSON object; an empty one when it is something else."""
    try:
        value: object = json.loads(text or "")
    except ValueError:
        return {}
    return cast("Data", value) if isinstance(value, dict) else {}


def hit_texts(result: str | None) -> list[str]:
    """The texts of the hits of a `read_memory` result, best first."""
    hits = cast("list[object]", as_object(result).get("hits") or [])
    return [str(cast("Data", hit).get("text", "")) for hit in hits if isinstance(hit, dict)]
