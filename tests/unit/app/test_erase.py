"""「忘掉我」: what is kept of one person goes, of the other nothing, and the receipt says what was there."""

import json
from contextlib import asynccontextmanager
from datetime import UTC

import pytest
from support.services import LI, MEMBER, ZHANG

from amrita_plugin_memory.app import Holdings, L3Ports, open_app
from amrita_plugin_memory.commands import Commands
from amrita_plugin_memory.embedding.fake import FakeEmbedder
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import Forbidden, StoreUnavailable
from amrita_plugin_memory.memo import MemoryMemoStore
from amrita_plugin_memory.settings import EnvSettings, FileSettings
from amrita_plugin_memory.subconscious.journal import Journal, RunRecord
from amrita_plugin_memory.subconscious.memory import ManualTimer, MemoryMessenger, MemoryStateStore, ScriptedReasoner
from amrita_plugin_memory.vectordb import MemoryStore

SECRET = "紫檀木箱"  # stands wherever the person's words are kept


class Stand:
    """One program on a folder; opened anew as often as a test wants."""

    def __init__(self, folder):
        self.folder = folder
        self.clock = ManualClock()
        self.store = MemoryStore()
        self.memos = MemoryMemoStore(self.clock)
        self.states = MemoryStateStore()

    @asynccontextmanager
    async def opened(self, *, l3):
        file = FileSettings.model_validate({"subconscious": {"enabled": l3, "target_user_id": ["10001", "10002"]}})

        async def character():
            return "你是小忆"

        ports = L3Ports(
            reasoner=ScriptedReasoner([]), timer=ManualTimer(), messenger=MemoryMessenger(), states=self.states,
            config_dir=self.folder / "config", zone=UTC, character=character,
        )  # fmt: skip
        async with open_app(
            env=EnvSettings(), file=lambda: file, data_dir=self.folder, memo_store=self.memos, l3=ports,
            clock=self.clock, store=self.store, embedder=FakeEmbedder(),
        ) as app:  # fmt: skip
            yield app

    def words(self):
        """Every file below the folder that holds the secret."""
        return [
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if path.is_file() and SECRET in path.read_bytes().decode("utf-8", "replace")
        ]


@pytest.fixture
async def stand(tmp_path):
    """Two people who talked, with facts, memos, sessions, a portrait and a run; and what the old plugin left."""
    stand = Stand(tmp_path)
    (tmp_path / "user_profile.md").write_text(f"旧画像：{SECRET}", "utf-8")
    async with stand.opened(l3=True) as app:
        for caller in (ZHANG, LI):
            await app.facts.remember(caller, scope="user", content=f"我有一只{SECRET}")
            await app.memo.replace(caller, f"备忘：{SECRET}")
            await app.l3.transcripts.record(caller.user, f"记住{SECRET}", "好的")
            await app.l3.amos.handle.at(caller.user.key()).replace_profile(f"有{SECRET}")
            record = RunRecord("r1", caller.user.account, "2026-01-01T00:00:00", summary=SECRET)
            Journal(tmp_path / "runs").write(record)
            await app.subconscious.spoke(caller.user.account, private=True)
        await app.facts.remember(MEMBER, scope="group", content=f"本群的{SECRET}")
        await app.l3.amos.search(SECRET, 5)  # the full-text index holds the texts as well
    await stand.states.change("amrita_memory", lambda _: {"last_abstracts": [SECRET]})
    return stand


@pytest.mark.parametrize("l3", [True, False])
async def test_all_of_one_person_goes_and_nothing_of_another(stand, l3):
    async with stand.opened(l3=l3) as app:
        commands = Commands(facts=app.facts, memo=app.memo, erasure=app.erasure, subconscious=app.subconscious)
        asked = await commands.answer(ZHANG, "忘掉我")
        assert "1 条记忆、7 字备忘录、1 天聊天记录、画像、1 份整理记录、整理进度" in asked
        assert (await app.facts.list(ZHANG, scope="user")).total == 1, "asking deletes nothing"
        code = asked.rsplit(" ", 1)[1]
        receipt = await commands.answer(ZHANG, f"forget-me {code}")
        assert receipt.startswith("已经忘掉：1 条记忆")
        assert "备份" in receipt
        assert await app.erasure.survey(ZHANG) == Holdings()
        assert await commands.answer(ZHANG, "忘掉我") == "没有记着任何关于你的事"
        assert await app.erasure.survey(LI) == Holdings(facts=1, memo=7, days=1, profile=True, runs=1, state=True)
        assert (await app.facts.list(MEMBER, scope="group")).total == 1
    held = stand.words()
    assert not [name for name in held if "10001" in name or "user_profile" in name]
    assert any("10002" in name for name in held)
    assert SECRET not in json.dumps(stand.states.states.get("amrita_memory"), ensure_ascii=False)


async def test_what_was_forgotten_does_not_come_back_with_a_restart(stand):
    async with stand.opened(l3=True) as app:
        await app.erasure.erase(ZHANG)
    async with stand.opened(l3=True) as app:
        assert await app.erasure.survey(ZHANG) == Holdings()
        assert not app.l3.service._plans["10001"].due


async def test_a_code_means_what_was_shown_and_nothing_else(stand):
    async with stand.opened(l3=False) as app:
        commands = Commands(facts=app.facts, memo=app.memo, erasure=app.erasure)
        code = (await commands.answer(ZHANG, "忘掉我")).rsplit(" ", 1)[1]
        await app.facts.remember(ZHANG, scope="user", content="后来说的话")
        for wrong in (code, "ffff", "是"):
            assert "确认码不对" in await commands.answer(ZHANG, f"忘掉我 {wrong}")
        assert (await app.facts.list(ZHANG, scope="user")).total == 2
        assert (await commands.answer(LI, "忘掉我")).rsplit(" ", 1)[1] != code


async def test_in_a_group_nothing_is_told_and_nothing_deleted(stand):
    async with stand.opened(l3=False) as app:
        commands = Commands(facts=app.facts, memo=app.memo, erasure=app.erasure)
        assert "私聊" in await commands.answer(MEMBER, "忘掉我")
        with pytest.raises(Forbidden):
            await app.erasure.erase(MEMBER)


async def test_no_receipt_is_given_for_what_is_still_there(stand, monkeypatch):
    async with stand.opened(l3=False) as app:

        async def lazy(self, caller, *, scope):
            return 1

        monkeypatch.setattr(type(app.facts), "forget_all", lazy)
        with pytest.raises(StoreUnavailable, match="没有全部删掉"):
            await app.erasure.erase(ZHANG)
