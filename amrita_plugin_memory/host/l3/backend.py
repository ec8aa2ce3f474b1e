"""An isolated backend for the core: our tools, no other tools, no history, no MCP clients."""

from __future__ import annotations

from amrita_core.base.backend import AbilityBackend, BackendSlots, MemoryBackend
from amrita_core.contexts import AbilityContext
from amrita_core.preset import MultiPresetManager
from amrita_core.tools.manager import MultiToolsManager
from amrita_core.tools.mcp import MultiClientManager
from amrita_core.types import MemoryModel


class IsolatedBackend(AbilityBackend, MemoryBackend):
    """Starts every run from nothing and commits nothing."""

    def __init__(self, tools: MultiToolsManager) -> None:
        self._ability = AbilityContext(tools=tools, mcp=MultiClientManager(tools))

    def slots(self) -> BackendSlots:
        """Both slots of a chat object."""
        return BackendSlots(ability=self, memory=self)

    async def load_ability_all(self, session_id: str) -> AbilityContext:
        """Ours alone."""
        return self._ability

    async def load_mcp_clients(self, session_id: str) -> MultiClientManager:
        """None."""
        return self._ability.mcp

    async def load_tools(self, session_id: str) -> MultiToolsManager:
        """The tools of this run."""
        return self._ability.tools

    async def load_presets(self, session_id: str) -> MultiPresetManager:
        """The host's presets."""
        return self._ability.presets

    async def load_memory(self, session_id: str) -> MemoryModel:
        """An empty history."""
        return MemoryModel()

    async def commit_memory(self, session_id: str, memory: MemoryModel) -> None:
        """Nothing is kept."""
