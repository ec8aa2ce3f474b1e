from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.analysis import local


@pytest.mark.parametrize(
    ("said", "facts", "preferences", "todos"),
    [
        ("你好，我叫小明，住在上海，养了一只猫", ["我叫小明", "住在上海", "养了一只猫"], [], []),
        ("我喜欢吃辣，但是对花生过敏。你喜欢什么？", [], ["我喜欢吃辣", "但是对花生过敏"], []),
        ("提醒我周五要交报告", [], [], ["提醒我周五要交报告"]),
        ("I'm a nurse and I live in Boston. I love jazz", ["I'm a nurse", "I live in Boston"], ["I love jazz"], []),
        ("Remind me to call mom", [], [], ["Remind me to call mom"]),
        ("我女儿叫糖糖", ["我女儿叫糖糖"], [], []),
        ("他喜欢跑步，你住在哪里？", [], [], []),
        ("如果我有钱就买车", [], [], []),
        ("今天天气不错", [], [], []),
        ("What do I like?", [], [], []),
        ("", [], [], []),
    ],
)
def test_one_turn_gives_what_the_user_says_about_himself(
    said: str, facts: list[str], preferences: list[str], todos: list[str]
) -> None:
    found = local.analyze_turn(said, "好的，我住在云上，我喜欢你")
    assert (found.facts, found.preferences, found.todos) == (facts, preferences, todos)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("我叫小明", "fact"), ("I work at a bank", "fact"), ("我不吃香菜", "preference"), ("I prefer tea", "preference"),
        ("帮我订一张机票", "task"), ("please translate this", "task"), ("哈哈哈", "chat"), ("hello", "chat"),
        ("以后都按这个流程来：先查天气，再订酒店，最后发行程", "workflow"), ("save this workflow for me", "workflow"),
        ("帮我做一个查天气的工具", "asset"), ("build me a web page", "asset"),
    ],
)  # fmt: skip
def test_a_message_has_one_kind(said: str, kind: str) -> None:
    assert local.classify(said) == kind


TALK = [
    ("想去杭州旅行，帮我看看西湖附近的酒店", "好的，西湖附近有不少酒店"),
    ("太棒了，谢谢！机票也看看", "航班很多"),
    ("这个接口报错了，代码又崩溃，烦死了", "请问错误是什么？需要您提供日志"),
    ("数据库也失败了，很失望", "抱歉，我不确定原因"),
]
IDS = ["a", "b", "c", "d"]


def test_a_session_has_intent_mood_entities_open_issues_and_turning_points() -> None:
    found = local.analyze_session(TALK, IDS)
    assert found.overall_intent in ("出行", "技术")
    assert found.sentiment_trend == "declining"
    assert "酒店" in "".join(found.key_entities)
    assert [(point.turn, point.turn_id) for point in found.turning_points] == [(3, "c")]
    assert "情绪由好转坏" in found.turning_points[0].reason
    assert "出行转到技术" in found.turning_points[0].reason
    assert "4 轮" in found.summary_insight


@pytest.mark.parametrize(
    ("said", "mood"),
    [
        ("太好了谢谢", 1),
        ("很难过", -1),
        ("不开心", -1),
        ("不难过", 1),
        ("I am not happy", -1),
        ("好的", 0),
        ("goodness", 0),
    ],
)
def test_a_negation_turns_the_mood(said: str, mood: int) -> None:
    assert local.mood(said) == mood


def test_facts_of_a_session_are_each_said_once_and_todos_are_not_among_them() -> None:
    talk = [("我住在上海", ""), ("我住在上海，提醒我周五要开会", ""), ("我喜欢茶", "")]
    assert local.facts(talk) == ["我住在上海", "我喜欢茶"]


def test_nothing_said_is_nothing_found() -> None:
    assert local.analyze_session([], []).summary_insight == ""
    assert local.turning_points([], []) == []


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), max_size=5))
def test_no_dialogue_makes_the_rules_fail(talk: list[tuple[str, str]]) -> None:
    local.analyze_session(talk, ["x"] * len(talk))
    local.facts(talk)
