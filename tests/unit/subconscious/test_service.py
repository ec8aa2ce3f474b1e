import asyncio
from datetime import timedelta

import pytest
from support.cycles import ME, build
from support.services import ZHANG

from amrita_plugin_memory.kernel.errors import Forbidden, LimitReached, Unavailable
from amrita_plugin_memory.kernel.scope import UniId
from amrita_plugin_memory.subconscious.ports import ReasoningFailed

STOP = [("subconscious_iter_stop", {"summary": "整理完了"})]


async def settle(world):
    """Let the writers of a burst come to their end."""
    await asyncio.gather(*world.service._writers.values())


async def test_nothing_is_scheduled_before_the_target_speaks(tmp_path):
    world = await build(tmp_path, [STOP])
    await world.service.start()
    assert world.timer.alarms == {}
    await world.service.spoke("99999", private=True)
    assert world.timer.alarms == {}


async def test_silence_after_a_message_leads_to_one_run_and_then_to_idleness(tmp_path):
    world = await build(tmp_path, [STOP])
    await world.service.spoke(ME, private=True)
    await settle(world)
    assert await world.ring(minutes=29) == 0
    assert await world.ring(minutes=2) == 1
    assert len(world.reasoner.seen) == 1
    assert (world.state().total_runs, world.state().plan.penalty, world.state().last_abstracts) == (1, 0, ("整理完了",))
    assert world.timer.alarms == {}


async def test_each_message_pushes_the_run_further_away(tmp_path):
    world = await build(tmp_path, [STOP])
    start = world.clock.now()
    for expected in (30, 45, 67.5):
        await world.service.spoke(ME, private=True)
        assert world.timer.alarms[f"subconscious_{ME}"][0] == start + timedelta(minutes=expected)
    await settle(world)
    assert world.state().plan.penalty == 3


async def test_a_thousand_messages_make_one_run(tmp_path):
    world = await build(tmp_path, [STOP], rethink_max_delay_minutes=60)
    for _ in range(1000):
        await world.service.spoke(ME, private=True)
    await settle(world)
    assert len([t for t in await world.amos.task_manager.list_pending() if t.type == "subconscious"]) == 1
    await world.ring(minutes=61)
    await world.ring(minutes=600)
    assert len(world.reasoner.seen) == 1


async def test_a_failure_keeps_the_penalty_and_leaves_the_chat_alone(tmp_path):
    world = await build(tmp_path, [ReasoningFailed("模型没有应答", tokens=70)])
    await world.service.spoke(ME, private=True)
    await world.service.spoke(ME, private=True)
    await settle(world)
    await world.ring(minutes=46)
    state = world.state()
    assert (state.total_runs, state.plan.penalty, state.plan.due, state.spent.tokens) == (0, 2, None, 70)
    assert world.journal.list(ME)[0].result == "failed"
    await world.service.spoke(ME, private=True)
    await settle(world)
    assert world.state().plan.penalty == 3


async def test_the_due_moment_and_the_penalty_survive_a_restart(tmp_path):
    before = await build(tmp_path, [STOP])
    await before.service.spoke(ME, private=True)
    await before.service.spoke(ME, private=True)
    await settle(before)
    due = before.timer.alarms[f"subconscious_{ME}"][0]
    await before.service.stop()
    after = await build(tmp_path, [STOP], base=before)
    await after.service.start()
    assert after.timer.alarms[f"subconscious_{ME}"][0] == due
    await after.service.spoke(ME, private=True)
    await settle(after)
    assert after.state().plan.penalty == 3


async def test_a_run_missed_during_downtime_happens_once_after_the_restart(tmp_path):
    before = await build(tmp_path, [STOP])
    await before.service.spoke(ME, private=True)
    await settle(before)
    await before.service.stop()
    before.clock.advance(hours=9)
    after = await build(tmp_path, [STOP], base=before)
    await after.service.start()
    assert await after.ring(seconds=30) == 0
    assert await after.ring(seconds=31) == 1
    assert len(after.reasoner.seen) == 1
    again = await build(tmp_path, [STOP], base=after)
    await again.service.start()
    assert again.timer.alarms == {}


async def test_a_message_during_a_run_aborts_it_cleanly_and_moves_it_away(tmp_path):
    world = await build(
        tmp_path, [[("subconscious_write_memory", {"content": "一", "tags": "", "importance": "low"})], STOP]
    )
    reached = asyncio.Event()

    async def pause(number):
        if number == 1:
            reached.set()
            await asyncio.Event().wait()

    world.reasoner.before_round = pause
    await world.service.spoke(ME, private=True)
    await settle(world)
    ringing = asyncio.create_task(world.ring(minutes=31))
    await reached.wait()
    async with asyncio.timeout(2):
        await world.service.spoke(ME, private=True)
    await ringing
    await settle(world)
    record = world.journal.list(ME)[0]
    assert (record.result, len(record.effects)) == ("aborted", 1)
    assert (world.state().total_runs, world.state().plan.penalty) == (0, 2)
    world.reasoner.before_round, world.reasoner.rounds = None, [STOP]
    await world.ring(minutes=46)
    assert world.state().total_runs == 1


async def test_two_processes_on_the_same_data_run_a_target_once(tmp_path):
    one = await build(tmp_path, [STOP])
    two = await build(tmp_path, [STOP], base=one, owner="two")
    await one.service.spoke(ME, private=True)
    await settle(one)
    await two.service.start()
    one.clock.advance(minutes=32)
    await asyncio.gather(one.timer.ring(one.clock.now()), two.timer.ring(one.clock.now()))
    assert len(one.reasoner.seen) + len(two.reasoner.seen) == 1


async def test_the_budget_of_the_day_stops_a_run_and_skips_the_next_until_tomorrow(tmp_path):
    rounds = [[("subconscious_get_context", {})]] * 9 + [STOP]
    world = await build(tmp_path, rounds, daily_token_budget=250)
    await world.service.spoke(ME, private=True)
    await settle(world)
    await world.ring(minutes=31)
    assert world.journal.list(ME)[0].result == "budget"
    assert world.state().spent.tokens == 300
    with pytest.raises(LimitReached, match="预算"):
        await world.service.run_now(ME)
    world.clock.advance(days=1)
    world.reasoner.rounds = [STOP]
    assert "整理完成" in await world.service.run_now(ME)


async def test_an_endless_tool_loop_ends_at_the_bound_of_iterations(tmp_path):
    world = await build(tmp_path, [[("subconscious_get_context", {})]] * 100, max_iterations=5)
    await world.service.run_now(ME)
    assert len(world.journal.list(ME)[0].steps) == 5


async def test_an_unforeseen_failure_is_journalled_and_does_not_escape(tmp_path):
    world = await build(tmp_path, [RuntimeError("boom")])
    assert "没有完成" in await world.service.run_now(ME)
    assert world.journal.list(ME)[0].error == "RuntimeError"


async def test_somebody_who_is_no_target_gets_no_run(tmp_path):
    world = await build(tmp_path, [STOP])
    with pytest.raises(Forbidden):
        await world.service.run_now("10002")


async def test_switched_off_is_inert(tmp_path):
    world = await build(tmp_path, [STOP])
    world.settings.enabled = False
    await world.service.start()
    await world.service.spoke(ME, private=True)
    assert (world.timer.alarms, world.states.states) == ({}, {})
    with pytest.raises(Unavailable):
        await world.service.suggest({"action": "create", "title": "x"})


async def test_suggestions_go_only_when_the_run_that_read_them_succeeds(tmp_path):
    world = await build(tmp_path, [[("subconscious_read_suggestions", {})], ReasoningFailed("断线")])
    await world.service.suggest({"action": "create", "title": "甲"})
    await world.service.run_now(ME)
    assert [one["title"] for one in world.state().suggestions] == ["甲"]

    async def meanwhile(number):
        if number == 1:
            await world.service.suggest({"action": "create", "title": "乙"})

    world.reasoner.rounds, world.reasoner.before_round = [[("subconscious_read_suggestions", {})], STOP], meanwhile
    await world.service.run_now(ME)
    assert [one["title"] for one in world.state().suggestions] == ["乙"]


async def test_chat_turns_are_read_once_across_runs(tmp_path):
    world = await build(tmp_path, [[("subconscious_read_chat_context", {})], STOP])
    chat = UniId.private(ME)
    await world.transcripts.record(chat, "我叫张三", "你好张三")
    await world.service.run_now(ME)
    assert "我叫张三" in world.reasoner.results[0]
    await world.transcripts.record(chat, "我养猫", "真好")
    world.reasoner.results.clear()
    await world.service.run_now(ME)
    assert "我养猫" in world.reasoner.results[0]
    assert "我叫张三" not in world.reasoner.results[0]


async def test_turns_of_a_failed_run_are_read_again(tmp_path):
    world = await build(tmp_path, [[("subconscious_read_chat_context", {})], ReasoningFailed("断线")])
    await world.transcripts.record(UniId.private(ME), "我叫张三", "你好")
    await world.service.run_now(ME)
    world.reasoner.rounds = [[("subconscious_read_chat_context", {})], STOP]
    world.reasoner.results.clear()
    await world.service.run_now(ME)
    assert "我叫张三" in world.reasoner.results[0]


async def test_what_cannot_be_delivered_waits_and_is_shown_once(tmp_path):
    rounds = [[("subconscious_send_to_user", {"intent": "问候"})], STOP]
    world = await build(tmp_path, rounds, allow_send_to_user=True)
    world.messenger.online = False
    await world.service.run_now(ME)
    assert len(world.state().pending_messages) == 1
    world.messenger.online = True
    for private in (False, True, True):
        await world.service.spoke(ME, private=private)
        await settle(world)
    assert world.messenger.sent == [(ME, "写好的话")]
    assert world.state().pending_messages == ()


async def test_the_state_of_the_published_plugin_is_taken_over_by_the_first_target(tmp_path):
    world = await build(tmp_path, [STOP])
    world.states.states["amrita_memory"] = {"total_runs": 41, "last_abstracts": ["旧"], "idle_planner": {"uid": ME}}
    await world.service.run_now(ME)
    assert world.state().total_runs == 42
    assert world.states.states["amrita_memory"]["total_runs"] == 41


async def test_memory_of_the_target_alone_is_in_reach(tmp_path):
    world = await build(tmp_path, [[("subconscious_list_memory", {})], STOP])
    await world.twins.facts.remember(ZHANG, scope="user", content="张三的事")
    from support.services import LI

    other = await world.twins.facts.remember(LI, scope="user", content="李四的密语")
    world.reasoner.rounds = [
        [("subconscious_list_memory", {}), ("subconscious_read_memory", {"query": "密语"}),
         ("subconscious_delete_memory", {"id": other.fact.id}), ("subconscious_update_memory", {"id": other.fact.id, "content": "x"})],
        STOP,
    ]  # fmt: skip
    await world.service.run_now(ME)
    assert "李四" not in "".join(world.reasoner.results)
    assert (await world.twins.facts.list(LI, scope="user")).total == 1
