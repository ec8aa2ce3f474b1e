"""The undo of a run: its effects taken back in reverse order, each only if nothing else has changed the thing since."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from amrita_plugin_memory.facts import Fact, Facts
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, NotFound
from amrita_plugin_memory.kernel.scope import Caller
from amrita_plugin_memory.knowledge import Entry, Knowledge
from amrita_plugin_memory.memo import Memo

from .bench import Effect, Kind, Profiles


@dataclass(frozen=True, slots=True)
class Reverted:
    """How many effects were taken back, and one sentence for each that was not."""

    undone: int
    skipped: tuple[str, ...]


class Reverter:
    """Takes effects back through the services."""

    def __init__(self, *, facts: Facts, memo: Memo, profiles: Profiles, knowledge: Knowledge | None) -> None:
        self._facts = facts
        self._memo = memo
        self._profiles = profiles
        self._knowledge = knowledge
        self._kinds: dict[Kind, Callable[[Caller, Effect], Awaitable[bool]]] = {
            "fact": self._fact,
            "knowledge": self._entry,
            "profile": self._profile,
            "memo": self._memo_text,
        }

    async def revert(self, caller: Caller, effects: Sequence[Effect]) -> Reverted:
        """Take ``effects`` back, the last first; what was changed since by somebody else stays and is named."""
        undone = 0
        skipped: list[str] = []
        for effect in reversed(effects):
            try:
                if await self._kinds[effect.kind](caller, effect):
                    undone += 1
                else:
                    skipped.append(f"{effect.kind} {effect.id[:20]} 之后又被改过，没有动它")
            except AmritaMemoryError as e:
                skipped.append(f"{effect.kind} {effect.id[:20]} 未能恢复：{e}")
        return Reverted(undone, tuple(skipped))

    async def _fact(self, caller: Caller, effect: Effect) -> bool:
        survey = await self._facts.survey(caller, scope="user")
        now = next((asdict(one.fact) for one in survey.facts if one.fact.id == effect.id), None)
        if not _same(now, effect.after):
            return False
        if effect.before is None:
            await self._facts.forget(caller, effect.id, scope="user")
        else:
            await self._facts.put_back(Fact(**effect.before))
        return True

    async def _entry(self, caller: Caller, effect: Effect) -> bool:
        if self._knowledge is None:
            raise NotFound("全局知识库未启用")
        try:
            now = asdict(await self._knowledge.read(effect.id))
        except NotFound:
            now = None
        if not _same(now, effect.after):
            return False
        if effect.before is None:
            await self._knowledge.delete(effect.id)
        else:
            await self._knowledge.put_back(Entry(**effect.before))
        return True

    async def _profile(self, caller: Caller, effect: Effect) -> bool:
        if await self._profiles.read(effect.id) != _text(effect.after):
            return False
        await self._profiles.replace(effect.id, _text(effect.before))
        return True

    async def _memo_text(self, caller: Caller, effect: Effect) -> bool:
        if await self._memo.read(caller) != _text(effect.after):
            return False
        await self._memo.replace(caller, _text(effect.before))
        return True


def _same(now: Mapping[str, Any] | None, then: Mapping[str, Any] | None) -> bool:
    return (now is None and then is None) or (now is not None and then is not None and dict(now) == dict(then))


def _text(state: Mapping[str, Any] | None) -> str:
    return str(state["text"]) if state else ""
