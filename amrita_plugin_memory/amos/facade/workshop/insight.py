"""Verbs of analysis and devices."""

from __future__ import annotations

from typing import Any

from amrita_plugin_memory.amos.analysis import SessionAnalysis, SessionAnalyzer, TurnAnalysis, TurningPoint
from amrita_plugin_memory.amos.devices import CapabilityCheck, HttpDevice, LLMDevice
from amrita_plugin_memory.amos.facade.verbs import Verbs
from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.kernel.scope import Scope


class InsightVerbs(Verbs):
    """What conversations say, and the devices of the root."""

    __slots__ = ()

    @property
    def session_analyzer(self) -> SessionAnalyzer:
        """The analyser of the root; it asks no access list."""
        return self.root.workshop.analyzer

    @property
    def llm_device(self) -> LLMDevice:
        """The language model of the root; `available` says whether one is configured."""
        return self.root.workshop.llm

    @property
    def http_device(self) -> HttpDevice:
        """The guarded way to the web, for the program."""
        return self.root.workshop.http

    @property
    def capability_check(self) -> CapabilityCheck:
        """What the root's manifest asks for and this machine has not."""
        return self.root.workshop.capabilities

    async def analyze_turn(self, user_msg: str, assistant_msg: str) -> TurnAnalysis:
        """What one turn says about its user: facts, preferences, todos, workflows and assets worth keeping."""
        return await self.root.workshop.analyzer.analyze_turn(user_msg, assistant_msg)

    async def classify_message(self, message: str) -> str:
        """fact, preference, task, chat, workflow or asset."""
        return self.root.workshop.analyzer.classify(message)

    async def analyze_session(self, session_id: str | None = None, recent_turns: int = 999) -> SessionAnalysis:
        """A session as a whole: intent, mood, entities, open issues, turning points."""
        return await self.root.workshop.analyzer.analyze(await self._readable(session_id), recent_turns)

    async def incremental_analyze(self, session_id: str | None = None) -> SessionAnalysis:
        """What was said since the last call, merged with what was known before."""
        return await self.root.workshop.analyzer.incremental(await self._readable(session_id))

    async def extract_facts(self, session_id: str | None = None, turn_count: int = 10) -> list[str]:
        """Stable facts and preferences from the last turns of a session."""
        return await self.root.workshop.analyzer.facts(await self._readable(session_id), turn_count)

    async def find_turning_point(self, session_id: str | None = None) -> list[TurningPoint]:
        """Turns of a session at which mood or intent changed."""
        return await self.root.workshop.analyzer.turning_points(await self._readable(session_id))

    async def _readable(self, session_id: str | None) -> Scope:
        scope = self._session(session_id)
        await self._may("read", layout.session_dir(scope))
        return scope


def offered(llm: LLMDevice, engine: str) -> dict[str, Any]:
    """What this machine has, in the shape a manifest asks for it."""
    return {
        "llm": dict.fromkeys(llm.features, True) if llm.available else False,
        "http": True,
        "sandbox": engine != "off",
        **dict.fromkeys(llm.features, True),
    }
