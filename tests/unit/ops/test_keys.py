import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.upkeep import Light, contents, fact, fill

from amrita_plugin_memory.facts.keys import Skipped, plan, renew
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.ops.bot.database import MemoTable
from amrita_plugin_memory.ops.upkeep.keys import migrate, united
from amrita_plugin_memory.ops.upkeep.progress import Meter
from amrita_plugin_memory.vectordb import MemoryStore, Row

SCHEMA = """
CREATE TABLE amrita_user_metadata (id INTEGER PRIMARY KEY, user_id VARCHAR(64) NOT NULL UNIQUE,
    last_active DATETIME NOT NULL, called_count INTEGER NOT NULL);
CREATE TABLE amrita_plugin_memory_user_memo (user_id VARCHAR(64) NOT NULL PRIMARY KEY
    REFERENCES amrita_user_metadata (user_id), content TEXT NOT NULL, version INTEGER NOT NULL,
    updated_at DATETIME NOT NULL);
"""


def meter():
    return Meter("keys", 0, ManualClock())


def database(path, memos):
    with sqlite3.connect(path) as db:
        db.executescript(SCHEMA)
        for key, content in memos.items():
            values = (key, content, 1, "2026-01-01 00:00:00.000000")
            db.execute("INSERT INTO amrita_plugin_memory_user_memo VALUES (?, ?, ?, ?)", values)
    db.close()
    return MemoTable(f"sqlite+aiosqlite:///{path}")


def memos_of(table):
    found = {row.key: row.content for row in table.rows()}
    table.close()
    return found


@pytest.mark.parametrize(
    ("old", "scope", "new"),
    [
        ("user_1", "user", "QQPlatform_Private_1"),
        ("group_2", "group", "QQPlatform_Group_2"),
        ("user_00012", "user", "QQPlatform_Private_12"),
        ("Foo_Private_6", "user", "QQPlatform_Private_6"),
        ("QQPlatform_user_9", "user", "QQPlatform_Private_9"),
        ("user_1\n", "user", "QQPlatform_Private_1"),
        ("123", "user", "QQPlatform_Private_123"),
        ("123", "group", "QQPlatform_Group_123"),
        ("QQPlatform_Private_1", "user", "QQPlatform_Private_1"),
    ],
)
def test_every_old_form_becomes_todays(old, scope, new):
    assert renew(old, scope) == new


@pytest.mark.parametrize(
    ("old", "scope"),
    [("QQPlatform_Channel_5", "user"), ("123", ""), (None, "user"), ("", "user"), (7, "user"), ("user_１２", "user")],
)
def test_what_is_no_key_is_skipped_with_a_reason(old, scope):
    assert isinstance(renew(old, scope), Skipped)


@given(st.text(max_size=30), st.sampled_from(["user", "group", ""]))
def test_a_renewed_key_stays_as_it_is(key, scope):
    new = renew(key, scope)
    if isinstance(new, str):
        assert renew(new, scope) == new


async def test_facts_move_page_by_page_and_a_second_run_changes_nothing():
    """F12 and F47: more rows than Chroma takes at once."""
    store = MemoryStore()
    rows = [fact(i, key=f"user_{i % 7}") for i in range(6500)]
    collection = await fill(store, rows, Light())
    vectors = {i: v for i, (_, _, v) in (await contents(store)).items()}
    done = await migrate(collection, None, limit=1000, meter=meter())
    assert (done.facts, done.scanned) == (6500, 6500)
    after = await contents(store)
    assert {m["user_id"] for _, m, _ in after.values()} == {f"QQPlatform_Private_{i}" for i in range(7)}
    assert all(np.array_equal(v, vectors[i]) for i, (_, _, v) in after.items())
    assert (await migrate(collection, None, limit=1000, meter=meter())).facts == 0


async def test_two_old_keys_of_one_account_meet_and_no_row_is_lost():
    store = MemoryStore()
    collection = await fill(store, [fact(1, key="user_7"), fact(2, key="user_007")], Light())
    await migrate(collection, None, limit=1000, meter=meter())
    assert await collection.size("QQPlatform_Private_7") == 2


async def test_a_dry_run_tells_and_changes_nothing(tmp_path):
    store = MemoryStore()
    collection = await fill(store, [fact(1, key="user_7"), Row("x", "无主", {"scope": "user"})], Light())
    table = database(tmp_path / "db.sqlite3", {"user_7": "旧"})
    done = await migrate(collection, table, limit=1000, meter=meter(), dry_run=True)
    assert (done.facts, done.memos, sum(done.reasons.values())) == (1, 1, 1)
    assert (await contents(store))[fact(1).id][1]["user_id"] == "user_7"
    assert "key_schema_version" not in await collection.metadata()
    assert memos_of(table) == {"user_7": "旧"}


async def test_memos_move_and_are_merged_without_loss(tmp_path):
    memos = {
        "user_1": "旧的\n两边都有",
        "QQPlatform_Private_1": "新的\n两边都有",
        "group_2": "群里的",
        "user_3": "长" * 60,
        "QQPlatform_Private_3": "也长" * 30,
        "odd": "不认识",
    }
    table = database(tmp_path / "db.sqlite3", memos)
    done = await migrate(None, table, limit=100, meter=meter())
    assert memos_of(table) == {
        "QQPlatform_Private_1": "新的\n两边都有\n旧的",
        "QQPlatform_Group_2": "群里的",
        "user_3": "长" * 60,
        "QQPlatform_Private_3": "也长" * 30,
        "odd": "不认识",
    }
    assert (done.memos, done.merged) == (2, 1)
    assert len(done.reasons) == 2
    assert (await migrate(None, table, limit=100, meter=meter())).memos == 0
    table.close()


async def test_the_parent_row_that_a_foreign_key_asks_for_is_made(tmp_path):
    table = database(tmp_path / "db.sqlite3", {"user_1": "旧"})
    await migrate(None, table, limit=100, meter=meter())
    table.close()
    db = sqlite3.connect(tmp_path / "db.sqlite3")
    assert db.execute("SELECT user_id FROM amrita_user_metadata").fetchall() == [("QQPlatform_Private_1",)]
    db.close()


async def test_a_database_without_our_table_or_that_cannot_be_opened(tmp_path):
    sqlite3.connect(tmp_path / "empty.sqlite3").close()
    empty = MemoTable(f"sqlite:///{tmp_path}/empty.sqlite3")
    assert (await migrate(None, empty, limit=100, meter=meter())).memos == 0
    empty.close()
    with pytest.raises(StoreUnavailable, match="ambot orm upgrade"):
        await migrate(None, MemoTable("postgresql+asyncpg://u:secret@127.0.0.1:1/x"), limit=1, meter=meter())


def test_united_texts_keep_every_line_once():
    assert united("a\nb", "b\nc\n") == "a\nb\nc"
    assert united("a", "a") == "a"


def test_a_plan_names_what_it_skips():
    found = plan([Row("1", "x", {"user_id": "user_1"}), Row("2", "x", {})])
    assert found.changed[0].metadata == {"user_id": "QQPlatform_Private_1", "scope": "user"}
    assert [one.id for one in found.skipped] == ["2"]
