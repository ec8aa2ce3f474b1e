"""Values the library takes and gives, under the names the reference implementation gives them. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast

MessageRole: TypeAlias = Literal["system", "user", "assistant", "tool"]
ROLES: Final = ("system", "user", "assistant", "tool")

SummarizeFn: TypeAlias = Callable[[str, str], "str | Awaitable[str]"]
"""``(text, instruction) -> summary``; a plain function runs in a thread."""

Emit: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""``(event, payload)``: returns when every subscriber has had it."""


class PromptMessage(dict[str, str]):
    """One message of a prompt: a read-only dict that goes into a chat request as it is; ``dict(m)`` gives a copy.

    Read-only because the messages of a session are built once and shared by all prompts that contain them.
    """

    __slots__ = ()

    @property
    def role(self) -> MessageRole:
        """Who speaks."""
        return cast("MessageRole", self["role"])

    @property
    def content(self) -> str:
        """What is said."""
        return self["content"]

    @property
    def tool_call_id(self) -> str | None:
        """Which call a tool message answers."""
        return self.get("tool_call_id")

    def to_dict(self) -> dict[str, str]:
        """A plain dict of its own."""
        return dict(self)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("提示消息是只读的，请用 dict(message) 复制后再改")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = _refuse  # pyright: ignore[reportAssignmentType]
    __ior__ = _refuse  # pyright: ignore[reportAssignmentType]


class UpdateWorkflowMode(StrEnum):
    """How `update_workflow` treats what is there; the bare words do as well."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    PATCH = "patch"


@dataclass(frozen=True, slots=True)
class WorkflowUpdateOptions:
    """Mode of an update; ``patch_heading`` names the section that `PATCH` replaces."""

    mode: UpdateWorkflowMode | str = UpdateWorkflowMode.OVERWRITE
    patch_heading: str | None = None


@dataclass(frozen=True, slots=True)
class CompressResult:
    """What a compression did; ``reason`` says why nothing was done. Turns are counted, not messages."""

    compressed: bool
    total_turns: int
    archived_turns: int
    kept_turns: int
    archive_path: str | None = None
    new_summary: str | None = None
    summary_truncated: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CacheMetadata:
    """What an outside cache needs to know about a prefix."""

    cache_key: str
    cache_version: int
