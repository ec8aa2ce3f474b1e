"""The services wired together, on in-memory twins: what config.toml says reaches the search, at once."""

import pytest
from support.services import ZHANG

from amrita_plugin_memory.app import open_app
from amrita_plugin_memory.embedding.fake import FakeEmbedder
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.memo import MemoryMemoStore
from amrita_plugin_memory.settings import EnvSettings, FileSettings
from amrita_plugin_memory.vectordb import MemoryStore


async def test_a_preference_for_what_is_new_counts_from_the_next_question_on(tmp_path):
    clock = ManualClock()
    settings = {"now": FileSettings()}
    async with open_app(
        env=EnvSettings(),
        file=lambda: settings["now"],
        data_dir=tmp_path,
        memo_store=MemoryMemoStore(clock),
        clock=clock,
        store=MemoryStore(),
        embedder=FakeEmbedder(),
    ) as app:
        await app.facts.remember(ZHANG, scope="user", content="他的电话是一二三", importance="high")
        clock.advance(days=400)
        await app.facts.remember(ZHANG, scope="user", content="他的电话是四五六", importance="low")

        async def first():
            answer = await app.facts.recall(ZHANG, scope="user", question="他的电话是")
            return answer.found[0].fact.content

        scores = {}
        for name, wish in {"newer": {"recency": 0.1}, "graver": {"importance": 0.1}}.items():
            settings["now"] = FileSettings.model_validate({"recall": wish})
            scores[name] = await first()
        assert scores == {"newer": "他的电话是四五六", "graver": "他的电话是一二三"}


@pytest.mark.parametrize("wish", [{"recency": 0.2}, {"importance": -1}, {"recency_half_life_days": 0}])
def test_a_preference_out_of_bounds_is_refused(wish):
    with pytest.raises(ValueError, match="recall"):
        FileSettings.model_validate({"recall": wish})
