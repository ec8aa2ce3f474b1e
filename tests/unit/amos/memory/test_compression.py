import asyncio
import contextlib
import threading
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from support.amos import P, file_root, listing, said, scope, stored_messages

from amrita_plugin_memory.amos.compression import Compression, CompressionRules
from amrita_plugin_memory.amos.compression.rules import chunks, next_try
from amrita_plugin_memory.amos.errors import CompressionError, LLMUnavailableError
from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.memory import Sessions, StableText, versions
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import InvalidInput

S1 = scope()
TS = "2026-11-30T12:00:00Z"


class Killed(BaseException):
    """The process is gone at this point."""


class Desk:
    """A session and a compression over it."""

    def __init__(self, root, summarize=lambda text, _: f"[{len(text)}]", **rules):
        self.files = file_root(root)
        self.sessions, self.stable = Sessions(self.files), StableText(self.files)
        self.rules = CompressionRules(**{"max_history_turns": 20, "keep_recent_turns": 5, **rules})
        self.compression = Compression(self.files, self.sessions, self.stable, summarize, self.rules, ManualClock())

    def fill(self, turns, ts=TS):
        for at in range(turns):
            held = self.sessions.add(S1, f"u{at}", f"a{at}", ts).turns
        return held

    def on_disk(self):
        return said(stored_messages(self.files.root))


def both(turns):
    return [f"{sign}{at}" for at in range(turns) for sign in "ua"]


async def test_the_head_goes_to_the_archive_and_the_tail_stays(tmp_path):
    desk = Desk(tmp_path)
    held = desk.fill(21)
    result = await desk.compression.after_turn(S1, held)
    assert (result.compressed, result.total_turns, result.archived_turns, result.kept_turns) == (True, 21, 16, 5)
    assert result.archive_path == "users/u1/sessions/s1/archive/messages_20261130.jsonl"
    assert said(desk.sessions.prompt(S1)) == both(21)[-10:]
    assert desk.on_disk() == both(21)
    assert desk.stable.summary(S1) == result.new_summary
    assert versions.get(desk.files, S1) == 2
    assert listing(desk.files.root / "users/u1/sessions/s1") == ["archive", "messages.jsonl", "summary.md"]


async def test_nothing_happens_below_the_bound(tmp_path):
    desk = Desk(tmp_path)
    assert await desk.compression.after_turn(S1, desk.fill(20)) is None
    assert not (await desk.compression.run(S1)).compressed
    assert desk.sessions.count(S1) == 20


async def test_force_compresses_a_short_session_and_still_keeps_the_recent_turns(tmp_path):
    desk = Desk(tmp_path)
    desk.fill(7)
    assert (await desk.compression.run(S1, force=True)).archived_turns == 2
    assert not (await desk.compression.run(S1, force=True)).compressed
    assert desk.on_disk() == both(7)


async def test_the_old_summary_is_merged_and_the_bound_is_hard(tmp_path):
    asked = []

    async def summarize(text, instruction):
        asked.append((text, instruction))
        return "新" * 50

    desk = Desk(tmp_path, summarize, summary_max_chars=30)
    desk.fill(10)
    desk.stable.write_summary(S1, lambda _: "旧摘要")
    result = await desk.compression.run(S1, force=True)
    assert "u0" in asked[0][0]
    assert "u9" not in asked[0][0]
    assert asked[1][0] == "旧摘要\n\n" + "新" * 50
    assert "30" in asked[1][1]
    assert result.summary_truncated
    assert desk.stable.summary(S1) == "新" * 30


async def test_a_long_head_is_distilled_in_pieces_the_model_can_take(tmp_path):
    sizes = []

    def summarize(text, _):
        sizes.append(len(text))
        return "s"

    desk = Desk(tmp_path, summarize, keep_recent_turns=0)
    for _ in range(10):
        desk.sessions.add(S1, "x" * 10_000, "y", TS)
    await desk.compression.run(S1, force=True)
    assert len(sizes) > 2
    assert max(sizes) <= 24_000
    assert desk.sessions.prompt(S1) == []


def failing(text, _):
    raise RuntimeError("down")


async def never(text, _):
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("summarize", "error"),
    [
        (failing, CompressionError),
        (lambda text, _: "", CompressionError),
        (lambda text, _: " \n", CompressionError),
        (None, LLMUnavailableError),
        (never, LLMUnavailableError),
    ],
    ids=["fails", "answers nothing", "answers blanks", "is not there", "hangs"],
)
async def test_a_summariser_that_does_not_work_changes_nothing(tmp_path, summarize, error):
    desk = Desk(tmp_path, summarize, timeout=0.05)
    desk.stable.write_summary(S1, lambda _: "old")
    held = desk.fill(21)
    assert await desk.compression.after_turn(S1, held) is None
    with pytest.raises(error):
        await desk.compression.run(S1)
    assert said(desk.sessions.prompt(S1)) == both(21)
    assert desk.stable.summary(S1) == "old"
    assert listing(desk.files.root / "users/u1/sessions/s1") == ["messages.jsonl", "summary.md"]


async def test_a_deferred_compression_is_not_tried_at_every_turn_and_happens_in_the_end(tmp_path):
    state = {"calls": 0, "up": False}

    def summarize(text, _):
        state["calls"] += 1
        if not state["up"]:
            raise RuntimeError("down")
        return "s"

    desk = Desk(tmp_path, summarize)
    desk.fill(20)
    for at in range(20, 60):
        assert await desk.compression.after_turn(S1, desk.sessions.add(S1, f"u{at}", f"a{at}", TS).turns) is None
    assert 3 <= state["calls"] <= 8
    state["up"] = True
    for at in range(60, 80):
        await desk.compression.after_turn(S1, desk.sessions.add(S1, f"u{at}", f"a{at}", TS).turns)
    assert desk.sessions.count(S1) <= 20
    assert desk.on_disk() == both(80)


async def test_turns_that_arrive_while_the_model_thinks_survive(tmp_path):
    desk = Desk(tmp_path)

    async def summarize(text, _):
        await asyncio.to_thread(desk.fill, 5)
        return "s"

    desk.compression.summarize = summarize
    desk.fill(21)
    assert (await desk.compression.run(S1)).archived_turns == 16
    assert said(desk.sessions.prompt(S1)) == both(21)[-10:] + both(5)


async def test_a_turn_that_is_deleted_while_the_model_thinks_does_not_come_back(tmp_path):
    desk = Desk(tmp_path)
    calls = []

    def summarize(text, _):
        if not calls:
            desk.sessions.delete(S1, desk.sessions.turns(S1)[0].id)
        calls.append(text)
        return "s"

    desk.compression.summarize = summarize
    desk.fill(25)
    assert (await desk.compression.run(S1)).archived_turns == 19
    assert desk.on_disk() == both(25)[2:]
    assert "u0\n" not in calls[-1]


async def test_a_summary_that_is_written_while_the_model_thinks_is_not_lost(tmp_path):
    desk = Desk(tmp_path)
    seen = []

    def summarize(text, _):
        if not seen:
            desk.stable.write_summary(S1, lambda _: "important")
        seen.append(text)
        return "merged" if "important" in text else "s"

    desk.compression.summarize = summarize
    desk.fill(21)
    assert (await desk.compression.run(S1)).new_summary == "merged"


async def test_two_that_compress_at_once_do_it_once(tmp_path):
    desks = [Desk(tmp_path, lambda text, _: "s") for _ in range(3)]
    desks[0].fill(30)
    results = await asyncio.gather(*(desk.compression.run(S1) for desk in desks))
    assert sorted(result.compressed for result in results) == [False, False, True]
    assert desks[0].on_disk() == both(30)


def writes(monkeypatch, kill_at):
    """Count the changes made to the disk by the process, and die before the ``kill_at``-th or in the middle of it."""
    made = []

    def counting(name):
        real = getattr(FileRoot, name)

        def call(self, rel, *args, **kw):
            if not str(rel).endswith("cache_version.txt"):
                made.append(name)
            if len(made) == kill_at:
                if name == "append":
                    real(self, rel, args[0][: len(args[0]) // 2], **kw)
                raise Killed
            return real(self, rel, *args, **kw)

        monkeypatch.setattr(FileRoot, name, call)

    for name in ("write", "append", "truncate", "delete"):
        counting(name)
    return made


@pytest.mark.parametrize("kill_at", range(1, 10))
@pytest.mark.parametrize("after", ["a turn", "a prompt", "a compression"])
async def test_a_kill_at_any_step_loses_and_doubles_nothing(tmp_path, monkeypatch, kill_at, after):
    desk = Desk(tmp_path, lambda text, _: "s")
    desk.fill(11, "2026-11-29T12:00:00Z")
    for at in range(11, 21):
        desk.sessions.add(S1, f"u{at}", f"a{at}", TS)
    with monkeypatch.context() as patch:
        made = writes(patch, kill_at)
        try:
            await desk.compression.run(S1)
            assert len(made) < kill_at
        except Killed:
            pass
    again = Desk(tmp_path, lambda text, _: "s")
    if after == "a turn":
        again.sessions.add(S1, "u21", "a21", TS)
        assert again.on_disk() == both(22)
    elif after == "a prompt":
        again.sessions.settle(S1)
        assert again.on_disk() == both(21)
    else:
        await again.compression.run(S1)
        assert again.on_disk() == both(21)
        assert len(again.sessions.prompt(S1)) == 10
        assert again.stable.summary(S1) == "s"
        assert listing(tmp_path / "users/u1/sessions/s1/archive") == [
            "messages_20261129.jsonl",
            "messages_20261130.jsonl",
        ]


async def test_a_kill_during_the_recovery_is_recovered_too(tmp_path, monkeypatch):
    desk = Desk(tmp_path, lambda text, _: "s")
    desk.fill(21)
    for kill_at in (3, 1, 2, 3, 4):
        with monkeypatch.context() as patch:
            writes(patch, kill_at)
            with contextlib.suppress(Killed):
                await desk.compression.run(S1)
    desk.sessions.settle(S1)
    assert desk.on_disk() == both(21)


async def test_turns_of_the_reference_that_look_alike_are_all_archived(tmp_path):
    desk = Desk(tmp_path, keep_recent_turns=1)
    desk.files.append(
        layout.messages(S1), b'{"role": "user", "content": "hi"}\n{"role": "assistant", "content": "yes"}\n' * 4
    )
    result = await desk.compression.run(S1, force=True)
    assert (result.archived_turns, result.kept_turns) == (3, 1)
    assert desk.on_disk() == ["hi", "yes"] * 4


async def test_damaged_lines_of_the_head_are_kept_apart(tmp_path):
    desk = Desk(tmp_path, keep_recent_turns=1)
    desk.fill(1)
    desk.files.append(layout.messages(S1), b'{"role": "user", "cont\n[1]\n')
    desk.fill(2)
    await desk.compression.run(S1, force=True)
    assert desk.on_disk() == [*both(1), *both(2)]
    assert desk.files.read(P("users/u1/sessions/s1/damaged.log")) == b'{"role": "user", "cont\n[1]\n'


async def test_the_archive_day_is_the_turns_own_in_the_configured_zone(tmp_path):
    desk = Desk(tmp_path, zone=ZoneInfo("Asia/Shanghai"), keep_recent_turns=0)
    desk.sessions.add(S1, "late", "x", "2026-11-29T23:30:00Z")
    desk.sessions.add(S1, "early", "x", "2026-11-29T10:00:00Z")
    await desk.compression.run(S1, force=True)
    assert listing(desk.files.root / "users/u1/sessions/s1/archive") == [
        "messages_20261129.jsonl",
        "messages_20261130.jsonl",
    ]


async def test_a_plain_summariser_does_not_hold_up_the_loop(tmp_path):
    gate = threading.Event()

    def summarize(text, _):
        assert gate.wait(10)
        return "s"

    desk = Desk(tmp_path, summarize)
    desk.fill(21)
    running = asyncio.create_task(desk.compression.run(S1))
    await asyncio.sleep(0)
    gate.set()
    assert (await running).compressed


def test_pieces_hold_every_line_and_none_is_too_long():
    parts = ["a" * 7, "b" * 30, "c", "d"]
    assert chunks(parts, 10) == ["a" * 7, "b" * 10, "c\nd"]
    assert chunks([], 10) == []
    assert [next_try(20, failures) for failures in (1, 2, 3, 9)] == [21, 22, 24, 36]


@pytest.mark.parametrize(
    "wrong", [{"max_history_turns": 0}, {"keep_recent_turns": -1}, {"summary_max_chars": 0}, {"timeout": 0}]
)
def test_bounds_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidInput):
        CompressionRules(**wrong)
    assert CompressionRules().zone is UTC
    assert datetime.now(UTC)


async def test_a_bound_below_the_kept_turns_still_compresses(tmp_path):
    desk = Desk(tmp_path, lambda text, _: "s", max_history_turns=4)
    assert (await desk.compression.after_turn(S1, desk.fill(5))).kept_turns == 2


async def test_a_session_of_more_than_64_mib_keeps_every_turn(tmp_path):
    desk = Desk(tmp_path, keep_recent_turns=2)
    place = layout.messages(S1)
    desk.fill(1)
    with desk.files.path(place).open("ab") as file:  # a line that holds no message goes to the archive unread
        file.write(b"x" * (64 * 2**20) + b"\n")
    desk.fill(4)
    result = await desk.compression.run(S1, force=True)
    assert (result.archived_turns, result.kept_turns) == (3, 2)
    assert desk.on_disk() == ["u0", "a0", *both(4)]


async def test_a_big_session_is_read_once_to_be_planned_and_once_under_the_lock(tmp_path, monkeypatch):
    desk = Desk(tmp_path)
    desk.fill(7)
    read = []
    real = FileRoot.read

    def counting(self, rel, **kw):
        read.append(rel)
        return real(self, rel, **kw)

    monkeypatch.setattr(FileRoot, "read", counting)
    assert (await desk.compression.run(S1, force=True)).compressed
    assert read.count(layout.messages(S1)) == 2
