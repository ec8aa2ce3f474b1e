from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amrita_plugin_memory.amos.analysis import SessionAnalysis, SessionAnalyzer, TurnAnalysis, TurningPoint
from amrita_plugin_memory.amos.analysis.state import place
from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.memory import Sessions
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.scope import Scope

ME = Scope("u1", None, "s1")


class Root:
    """Files, sessions and the analyser over them."""

    def __init__(self, folder: Path, **functions: Any) -> None:
        self.files = FileRoot.open(folder, sync=False)
        self.sessions = Sessions(self.files)
        self.analyzer = SessionAnalyzer(self.files, self.sessions, clock=ManualClock(), **functions)

    def say(self, *texts: str) -> None:
        for text in texts:
            self.sessions.add(ME, text, "好", "2026-11-30T00:00:00Z")


async def test_a_model_is_asked_with_the_dialogue_as_data_and_its_prose_is_read(tmp_path: Path) -> None:
    heard: list[Any] = []

    async def model(messages: list[dict[str, str]]) -> str:
        heard.append(messages)
        return '好的：```json\n{"overallIntent": "订酒店", "keyEntities": ["杭州"], "turningPoints": [{"turn": 2, "reason": "改期"}, {"turn": 99}], "sentimentTrend": "positive"}\n```'

    root = Root(tmp_path, analyze_session_fn=model)
    root.say("去杭州", "改到周日")
    found = await root.analyzer.analyze(ME)
    assert (found.overall_intent, found.key_entities, found.sentiment_trend) == ("订酒店", ["杭州"], "positive")
    assert [(point.turn, point.reason) for point in found.turning_points] == [(2, "改期")]
    assert found.turning_points[0].turn_id
    assert "用户：去杭州" in heard[0][1]["content"]


@pytest.mark.parametrize("answer", ["我不知道", "", None, 5, {"x": 1}, '{"overall_intent"', RuntimeError("x")])
async def test_an_answer_that_cannot_be_read_leaves_it_to_the_local_rules(tmp_path: Path, answer: Any) -> None:
    def model(*_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    root = Root(tmp_path, analyze_session_fn=model, analyze_fn=model)
    root.say("我叫小明")
    assert "1 轮" in (await root.analyzer.analyze(ME)).summary_insight
    assert (await root.analyzer.analyze_turn("我叫小明", "")).facts == ["我叫小明"]


async def test_a_model_that_hangs_is_left_at_the_time_limit(tmp_path: Path) -> None:
    import asyncio

    async def model(*_: Any) -> Any:
        await asyncio.Event().wait()

    root = Root(tmp_path, analyze_fn=model, timeout=0.05)
    assert (await root.analyzer.analyze_turn("我叫小明", "")).facts == ["我叫小明"]


async def test_injected_answers_may_be_our_types_objects_or_text(tmp_path: Path) -> None:
    for answer in (
        TurnAnalysis(facts=["f"]),
        {"facts": ["f"]},
        '{"facts": "f"}',
        {"facts": [{"content": "f"}, "", None, "f"]},
    ):
        root = Root(tmp_path, analyze_fn=lambda u, a, answer=answer: answer)
        assert (await root.analyzer.analyze_turn("x", "y")).facts == ["f"]


async def test_only_new_turns_are_analysed_again_and_numbers_go_on(tmp_path: Path) -> None:
    seen: list[str] = []

    def model(messages: list[dict[str, str]]) -> Any:
        seen.append(messages[1]["content"])
        n = len(seen)
        return {
            "overall_intent": f"i{n}",
            "key_entities": [f"e{n}"],
            "turning_points": [{"turn": 1, "reason": f"r{n}"}],
        }

    root = Root(tmp_path, analyze_session_fn=model)
    root.say("一", "二")
    await root.analyzer.incremental(ME)
    root.say("三")
    found = await root.analyzer.incremental(ME)
    assert "一" in seen[0]
    assert "一" not in seen[1]
    assert "三" in seen[1]
    assert (found.overall_intent, found.key_entities, found.analyzed_turns) == ("i2", ["e2", "e1"], 3)
    assert [(point.turn, point.reason) for point in found.turning_points] == [(1, "r1"), (3, "r2")]
    assert await root.analyzer.incremental(ME) == found
    assert len(seen) == 2


async def test_the_place_is_kept_by_turn_id_so_that_a_compression_moves_nothing(tmp_path: Path) -> None:
    seen: list[str] = []
    root = Root(tmp_path, analyze_session_fn=lambda m: seen.append(m[1]["content"]) or {"overall_intent": "x"})
    root.say(*"abcdef")
    await root.analyzer.incremental(ME)
    path = layout.messages(ME)
    kept = (root.files.read(path) or b"").split(b"\n")[-5:]
    root.files.write(path, b"\n".join(kept))  # as after a compression: only the last two turns are left
    root.say("新的一句")
    await root.analyzer.incremental(ME)
    assert "新的一句" in seen[1]
    assert "用户：e" not in seen[1]
    assert "用户：f" not in seen[1]


async def test_the_state_file_is_one_the_reference_implementation_can_read(tmp_path: Path) -> None:
    root = Root(tmp_path)
    root.say("我叫小明", "谢谢")
    await root.analyzer.incremental(ME)
    data = json.loads((tmp_path / place(ME)).read_text())
    assert data["lastAnalyzedTurn"] == 4
    assert set(data["previousInsight"]) >= {
        "overall_intent",
        "sentiment_trend",
        "key_entities",
        "unresolved_issues",
        "summary_insight",
        "turning_points",
    }
    assert data["updatedAt"].endswith("Z")


@pytest.mark.parametrize(
    "state",
    [
        b"not json",
        b"[]",
        b'{"lastAnalyzedTurn": 5, "previousInsight": null}',
        b'{"lastTurnIds": 5, "previousInsight": [1]}',
        b'{"previousInsight": {"overall_intent": 5, "turning_points": [3, {"turn": "x"}]}}',
    ],
)
async def test_a_state_that_is_damaged_or_foreign_means_beginning_anew(tmp_path: Path, state: bytes) -> None:
    root = Root(tmp_path)
    root.say("我叫小明")
    root.files.write(place(ME), state)
    assert (await root.analyzer.incremental(ME)).analyzed_turns >= 1


async def test_two_at_once_count_each_turn_once(tmp_path: Path) -> None:
    import asyncio

    root = Root(tmp_path)
    root.say("一", "二")
    found = await asyncio.gather(*(root.analyzer.incremental(ME) for _ in range(5)))
    assert {one.analyzed_turns for one in found} == {2}


async def test_facts_and_turning_points_of_a_session(tmp_path: Path) -> None:
    root = Root(tmp_path)
    root.say("我住在上海", "太棒了谢谢", "很失望，退款")
    assert await root.analyzer.facts(ME) == ["我住在上海"]
    assert await root.analyzer.facts(ME, 1) == []
    points = await root.analyzer.turning_points(ME)
    assert [point.turn for point in points] == [3]
    assert isinstance(points[0], TurningPoint)


async def test_an_empty_session_and_odd_counts(tmp_path: Path) -> None:
    root = Root(tmp_path)
    assert await root.analyzer.analyze(ME) == SessionAnalysis()
    assert await root.analyzer.incremental(ME) == SessionAnalysis()
    for call in (root.analyzer.analyze(ME, 0), root.analyzer.facts(ME, 0)):
        with pytest.raises(InvalidInput):
            await call
