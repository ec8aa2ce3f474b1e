"""L3 over in-memory twins and a real AMOS root in a temporary folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from amrita_plugin_memory.amos import AMOS
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.knowledge import Knowledge, MemoryEntryFiles
from amrita_plugin_memory.retrieval import Recall
from amrita_plugin_memory.settings import SubconsciousSettings
from amrita_plugin_memory.subconscious import Collaborators, Subconscious
from amrita_plugin_memory.subconscious.cycle import Cycle
from amrita_plugin_memory.subconscious.due import DueRuns
from amrita_plugin_memory.subconscious.journal import Journal
from amrita_plugin_memory.subconscious.memory import ManualTimer, MemoryMessenger, MemoryStateStore, ScriptedReasoner
from amrita_plugin_memory.subconscious.prompts import Prompts
from amrita_plugin_memory.subconscious.rules.state import CycleState, load
from amrita_plugin_memory.subconscious.transcripts import AmosProfiles, AmosTranscripts

from .services import Twins, make

ME = "10001"


@dataclass
class World:
    """What a test may reach into."""

    twins: Twins
    amos: AMOS
    service: Subconscious
    reasoner: ScriptedReasoner
    messenger: MemoryMessenger
    timer: ManualTimer
    states: MemoryStateStore
    journal: Journal
    knowledge: Knowledge
    transcripts: AmosTranscripts
    profiles: AmosProfiles
    clock: ManualClock
    settings: SubconsciousSettings

    def state(self) -> CycleState:
        """The target's state as stored."""
        return load(self.states.states.get(f"QQPlatform_Private_{ME}"))

    async def ring(self, **later: float) -> int:
        """Let time pass and ring what is due."""
        self.clock.advance(**later)
        return await self.timer.ring(self.clock.now())


async def build(folder: Path, rounds, *, owner: str = "one", base: World | None = None, **settings) -> World:
    """A world; ``base`` shares its stores and root: the same program after a restart, or another process."""
    twins = base.twins if base else make()
    clock = twins.clock
    config = SubconsciousSettings(enabled=True, target_user_id=ME, **settings)
    amos = await AMOS.create(root_dir=folder / "amos", actor="system", clock=clock, fsync=False)
    reasoner = ScriptedReasoner(rounds)
    states = base.states if base else MemoryStateStore()
    messenger, timer, journal = MemoryMessenger(), ManualTimer(), Journal(folder / "runs")

    async def summarise(_account: str, talk: str) -> str:
        return f"聊了{talk.count('用户：')}轮"

    async def character(_account: str) -> str:
        return "你是小忆"

    knowledge = base.knowledge if base else Knowledge(
        files=MemoryEntryFiles(), store=twins.store, embedder=twins.embedder, recall=Recall(twins.embedder), clock=clock,
        collection="amrita_global_knowledge", max_chars=lambda: config.knowledge_max_chars,
    )  # fmt: skip
    transcripts = AmosTranscripts(amos, clock=clock, zone=UTC, summarise=summarise)
    profiles = AmosProfiles(amos)
    parts = Collaborators(
        facts=twins.facts, memo=twins.memo, knowledge=knowledge, profiles=profiles, transcripts=transcripts,
        states=states, due=DueRuns(amos.task_manager), timer=timer, messenger=messenger, clock=clock,
        cycle=Cycle(
            reasoner=reasoner, prompts=Prompts(folder / "config"), journal=journal, messenger=messenger, clock=clock,
            character=character,
        ),
    )  # fmt: skip
    service = Subconscious(parts, settings=lambda: config, owner=owner, settle=0)
    return World(
        twins,
        amos,
        service,
        reasoner,
        messenger,
        timer,
        states,
        journal,
        knowledge,
        transcripts,
        profiles,
        clock,
        config,
    )
