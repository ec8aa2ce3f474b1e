import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.demo.script.reading import Reading
from amrita_plugin_memory.demo.script.rules import LABEL, RULES, Call, respond
from amrita_plugin_memory.demo.story import STORY

TOOLS = ("write_memory", "read_memory", "update_memo", "read_memo")


def ask(said, *, system="", results=(), rounds=0, tools=TOOLS):
    return respond(Reading(system=system, said=said, tools=tools, rounds=rounds, results=tuple(results)))


def success(**fields):
    return json.dumps({"status": "success", **fields}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("said", "rule", "first"),
    [
        (
            "我叫小林",
            "name",
            Call("write_memory", {"content": "用户叫小林", "tags": "身份", "importance": "high", "scope": "user"}),
        ),
        (
            "我对花生过敏",
            "allergy",
            Call(
                "write_memory",
                {"content": "用户对花生过敏", "tags": "健康,过敏", "importance": "high", "scope": "user"},
            ),
        ),
        (
            "我喜欢喝乌龙茶。",
            "taste",
            Call(
                "write_memory", {"content": "用户喜欢喝乌龙茶", "tags": "喜好", "importance": "medium", "scope": "user"}
            ),
        ),
        (
            "记住：周三开会",
            "fact",
            Call("write_memory", {"content": "周三开会", "tags": "事实", "importance": "medium", "scope": "user"}),
        ),
        (
            "记住：本群每周五发版",
            "group-fact",
            Call("write_memory", {"content": "本群每周五发版", "tags": "群", "importance": "medium", "scope": "group"}),
        ),
        ("我喜欢喝什么？", "question", Call("read_memory", {"query": "我喜欢喝什么？", "top_k": 5, "scope": "user"})),
        ("还记得我的生日吗", "recall", Call("read_memory", {"query": "我的生日吗", "top_k": 5, "scope": "user"})),
        (
            "群里什么时候发版？",
            "group-question",
            Call("read_memory", {"query": "群里什么时候发版？", "top_k": 5, "scope": "group"}),
        ),
    ],
)
def test_a_sentence_leads_to_its_tool_call(said, rule, first):
    reply = ask(said)
    assert (reply.rule, reply.calls[0]) == (rule, first)


def test_the_content_check_of_the_host_is_answered_before_anything_else():
    reply = ask("我叫小林", tools=("report",))
    assert reply.calls == (Call("report", {"content": "无", "invoke": False}),)


def test_a_name_question_quotes_the_memo_of_the_prompt_and_calls_nothing():
    reply = ask("我叫什么？", system="你好\n<MEMO>\n喜欢猫\n用户叫小林\n</MEMO>")
    assert (reply.text, reply.calls) == (f"{LABEL}备忘录里写着：用户叫小林", ())


def test_without_a_memo_the_same_question_goes_to_the_memories():
    assert ask("我叫什么？").calls[0].tool == "read_memory"


def test_hits_are_quoted_best_first_and_nothing_else():
    hits = success(hits=[{"id": "a1", "text": "甲"}, {"id": "b2", "text": "乙"}, {"id": "c3", "text": "丙"}])
    assert ask("我喜欢什么？", results=[("read_memory", hits)], rounds=1).text == f"{LABEL}我查到：甲；乙"


def test_no_hit_is_said_plainly():
    assert "没有查到" in ask("我喜欢什么？", results=[("read_memory", success(hits=[]))], rounds=1).text


@pytest.mark.parametrize("result", ['{"status":"error","message":"已满"}', "ERR: 已满", '["已满"]'])
def test_a_failed_tool_is_quoted_and_no_success_is_claimed(result):
    text = ask("记住：甲", results=[("write_memory", result)], rounds=1).text
    assert "已满" in text
    assert "记下了" not in text


def test_success_is_not_claimed_when_no_tool_was_offered():
    assert "没有可用的记忆工具" in ask("记住：甲", tools=("agent_stop",)).text
    assert "什么也没有记" in ask("记住：甲", tools=()).text


def test_the_memo_is_replaced_by_what_it_was_and_one_more_line():
    seen = [("write_memory", success(memory_id="1")), ("read_memo", success(memo="喜欢猫\n用户叫小林", chars=9))]
    assert ask("我叫小林", results=seen, rounds=1).calls == (Call("update_memo", {"content": "喜欢猫\n用户叫小林"}),)
    assert ask("备忘：住在杭州", results=seen, rounds=1).calls[0].arguments == {
        "content": "喜欢猫\n用户叫小林\n住在杭州"
    }


@pytest.mark.parametrize("step", [s for s in STORY if s.say and not s.say.startswith("/")], ids=lambda s: s.say)
def test_every_sentence_of_the_story_is_understood(step):
    assert ask(step.say).rule != "label"


@given(said=st.text(max_size=60))
def test_any_sentence_gets_a_labelled_text_or_calls(said):
    reply = ask(said)
    assert reply.calls or reply.text.startswith(LABEL)


@given(said=st.sampled_from([s.say for s in STORY if s.say.endswith("？")]))
def test_a_question_with_an_empty_prompt_and_empty_results_is_never_answered_with_knowledge(said):
    text = ask(said, results=[("read_memory", success(hits=[]))], rounds=1).text
    assert not [word for word in ("小林", "花生", "乌龙茶", "每周五") if word in text]


def test_rule_names_are_unique():
    assert len({rule.name for rule in RULES}) == len(RULES)
