import json
import re
import string

import pytest

from amrita_plugin_memory.demo import checks
from amrita_plugin_memory.demo.checks import Scene, Turn
from amrita_plugin_memory.demo.onebot import Heard, Place, plain
from amrita_plugin_memory.demo.script.model import Recorded
from amrita_plugin_memory.demo.script.reading import ChatRequest, read
from amrita_plugin_memory.demo.script.rules import Call, Reply
from amrita_plugin_memory.demo.story import IN_GROUP, ME, STORY

OK = json.dumps({"status": "success", "hits": [{"id": "a", "text": "用户对花生过敏"}]}, ensure_ascii=False)
FAIL = '{"status":"error","message":"坏了"}'


def request(*, system="", said="问", results=(), calls=(), tools=("read_memory",), history=""):
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": history},
        {"role": "user", "content": said},
    ]
    for i, (name, text) in enumerate(results):
        messages.append({"role": "assistant", "tool_calls": [{"id": str(i), "function": {"name": name}}]})
        messages.append({"role": "tool", "tool_call_id": str(i), "content": text})
    body = {"messages": messages, "tools": [{"function": {"name": name}} for name in tools]}
    return Recorded(body, read(ChatRequest.model_validate(body)), Reply("r", "", tuple(calls)))


def scene(*requests, reply="好", heard=(), silence=""):
    return Scene(Turn(ME, "问", reply, tuple(requests), silence=silence), tuple(heard))


RECALL = Call("read_memory", {"query": "过敏", "scope": "user"})
ASKED = request(calls=[RECALL])
ANSWERED = request(results=[("read_memory", OK)])
FAILED = request(results=[("read_memory", FAIL)])
MEMO = request(system="前<MEMO>\n用户叫小林\n</MEMO>")
REPORT = request(tools=("report",))


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (checks.replied("好"), scene(), scene(reply="坏")),
        (checks.replied(), scene(), scene(reply=None)),
        (checks.reply_omits("坏"), scene(), scene(reply="坏")),
        (checks.reply_omits("坏"), scene(), scene(reply=None)),
        (checks.called("read_memory", "过敏", scope="user"), scene(ASKED, ANSWERED), scene(ANSWERED)),
        (checks.called("read_memory", "过敏"), scene(ASKED, ANSWERED), scene(ASKED, FAILED)),
        (checks.called("read_memory", "过敏", scope="group"), scene(request(calls=[Call("read_memory", {"q": "过敏", "scope": "group"})]), ANSWERED), scene(ASKED, ANSWERED)),
        (checks.called("read_memory", "过敏"), scene(ASKED, ANSWERED), scene(ASKED)),
        (checks.recalled("花生"), scene(ASKED, ANSWERED), scene(ASKED, FAILED)),
        (checks.recalled("花生"), scene(ASKED, ANSWERED), scene(request(calls=[RECALL], history="花生"), ANSWERED)),
        (checks.recalled("花生"), scene(ASKED, ANSWERED), scene()),
        (checks.recall_omits("茶"), scene(ASKED, ANSWERED), scene(ASKED, FAILED)),
        (checks.recall_omits("茶"), scene(ASKED, ANSWERED), scene()),
        (checks.recall_omits("茶"), scene(ASKED, ANSWERED), scene(request(results=[("read_memory", OK.replace("花生", "茶"))]))),
        (checks.memo_in_prompt("小林"), scene(REPORT, MEMO), scene(MEMO, ASKED)),
        (checks.memo_in_prompt("小林"), scene(REPORT, MEMO), scene(REPORT)),
        (checks.memo_in_prompt("小林"), scene(MEMO), scene(request(system="用户叫小林"))),
        (checks.request_omits("小林"), scene(ASKED), scene(ASKED, MEMO)),
        (checks.request_omits("小林"), scene(ASKED), scene()),
        (checks.place_never_saw(IN_GROUP, "小林"), scene(heard=[Heard("group:20001", "好"), Heard("private:10001", "小林")]), scene(heard=[Heard("group:20001", "小林")])),
        (checks.place_never_saw(IN_GROUP, "小林"), scene(heard=[Heard("group:20001", "好")]), scene(heard=[Heard("group:2000", "好")])),
    ],
)  # fmt: skip
def test_a_check_holds_only_when_it_really_happened(check, good, bad):
    assert check.look(good).ok
    assert not check.look(bad).ok


def test_the_proof_of_the_memo_quotes_the_recorded_prompt():
    assert "<MEMO> 用户叫小林 </MEMO>" in checks.memo_in_prompt("小林").look(scene(MEMO)).evidence


def test_a_missing_reply_is_explained():
    assert checks.replied().look(scene(reply=None, silence="聊天没有开启")).evidence == "聊天没有开启"


def test_every_step_of_the_story_is_checked_and_uses_only_what_was_captured_before():
    known = set()
    for step in STORY:
        assert step.checks or step.action in ("restart", "silence"), step.title
        wanted = {name for _, name, _, _ in string.Formatter().parse(step.say) if name}
        assert wanted <= known, step.title
        known |= set(step.capture)
        assert all(re.compile(pattern).groups == 1 for pattern in step.capture.values())


def test_an_id_is_captured_from_the_line_of_its_memory():
    listing = "📒 个人记忆列表（共 2 条）\n1. 用户喜欢喝乌龙茶 #喜好 11-30 [0c6e155d]\n2. 用户叫小林 [340caa66]"
    step = next(s for s in STORY if "tea" in s.capture)
    assert step.captured_from(listing) == {"tea": "0c6e155d"}
    assert step.captured_from("暂无") == {}


def test_an_excerpt_is_one_bounded_line_around_the_word():
    text = "头" * 300 + "\n针\n" + "尾" * 300
    shown = checks.excerpt(text, "针", 60)
    assert "针" in shown
    assert len(shown) <= 62
    assert "\n" not in shown


def test_an_answer_is_heard_where_the_whole_group_reads_or_not():
    assert Place(1, 2).address == "group:2"
    assert Place(1, 2, temporary=True).address == "private:1"
    assert Place(1).address == "private:1"


def test_the_text_of_a_message_is_its_readable_part():
    node = {"type": "node", "data": {"content": [{"type": "text", "data": {"text": "甲"}}]}}
    assert plain([node, node]) == "甲\n甲"
    assert plain([{"type": "reply", "data": {"id": 1}}, {"type": "text", "data": {"text": "乙"}}]) == "乙"
    assert plain([{"type": "image", "data": {}}]) == "[image]"
    assert plain("丙") == "丙"
    assert plain(None) == ""
