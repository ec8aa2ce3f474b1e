import json
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.upkeep import Light, contents, fact, fill, place, whole_space

from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import Corrupt, EmbeddingUnavailable, InvalidInput, NotFound
from amrita_plugin_memory.ops.backup import stream
from amrita_plugin_memory.ops.backup.read import check, rows
from amrita_plugin_memory.ops.backup.shelf import find, listed, manifest_of, surplus
from amrita_plugin_memory.ops.backup.stream import elements, events
from amrita_plugin_memory.ops.backup.write import create
from amrita_plugin_memory.ops.jobs.reindex import back_up
from amrita_plugin_memory.ops.jobs.restore import restore
from amrita_plugin_memory.vectordb import Row

OLD, NEW = Light(model="old", dimension=32), Light(model="new", dimension=48)
GROUP = "QQPlatform_Group_7"


def published(folder, name="embed_backup_20261130_131643.json", **changes):
    """A backup as the published plugin writes it."""
    whole = {
        "collection": COLLECTION,
        "created_at": "2026-11-30T13:16:43.099077+00:00",
        "ids": ["a" * 32, "b" * 32],
        "documents": ["喜欢乌龙茶", "养了一只猫"],
        "metadatas": [{"user_id": "user_1", "scope": "user", "tags": "x"}, {"user_id": GROUP, "scope": "group"}],
        **changes,
    }
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(whole, ensure_ascii=False), "utf-8")
    return path


async def test_the_published_plugin_can_read_a_backup_and_everything_is_in_it(tmp_path):
    at = place(tmp_path, embedder=OLD)
    await fill(at.store, [fact(i) for i in range(5000)], OLD)
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "KNOWLEDGE_abc.md").write_text("# 题\n摘要\n---\n正文", "utf-8")
    made = await back_up(at, reason="manual")
    whole = json.loads(made.path.read_text("utf-8"))
    stored = await contents(at.store)
    assert whole["collection"] == COLLECTION
    assert dict(zip(whole["ids"], whole["documents"], strict=True)) == {i: d for i, (d, _, _) in stored.items()}
    assert whole["metadatas"] == [m for _, m, _ in stored.values()]
    assert whole["knowledge"] == [{"name": "knowledge/KNOWLEDGE_abc.md", "text": "# 题\n摘要\n---\n正文"}]
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert "\n" not in made.path.read_text("utf-8")
    assert list(at.backups.glob("embed_backup_*.json")) == [made.path]  # what the published plugin lists
    manifest = check(made.path).manifest
    assert (manifest.rows, manifest.scopes, manifest.knowledge) == (5000, {"user": 5000}, 1)
    assert not list(at.backups.glob(".part-*"))


async def test_two_backups_of_one_second_are_two_files(tmp_path):
    """F11"""
    at = place(tmp_path, embedder=OLD)
    collection = await fill(at.store, [fact(1)], OLD)
    clock = ManualClock()
    made = {(await create(at.backups, collection, clock=clock)).path.name for _ in range(3)}
    assert made == {f"embed_backup_20260101_000000{n}.json" for n in ("", "_1", "_2")}
    assert [b.number for b in listed(at.backups)] == [2, 1, 0]


async def test_pruning_keeps_the_newest_and_never_what_is_in_use(tmp_path):
    for day in range(1, 7):
        published(tmp_path, f"embed_backup_2026010{day}_000000.json")
    names = {p.name for p in surplus(tmp_path, keep=3)}
    assert names == {f"embed_backup_2026010{day}_000000.json" for day in (1, 2, 3)}
    used = tmp_path / "embed_backup_20260102_000000.json"
    assert used not in surplus(tmp_path, keep=3, spare={used})


async def test_restore_does_not_prune_the_file_it_restores(tmp_path):
    """F10"""
    at = place(tmp_path, embedder=NEW, reembed_backup_keep=1)
    await fill(at.store, [fact(1)], OLD)
    path = published(at.backups)
    NEW.fail_after = None
    await restore(at, path)
    assert path.is_file()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"ids": [], "documents": [], "metadatas": []}, "没有记忆"),
        ({"ids": ["a", "a"]}, "重复"),
        ({"ids": ["a"]}, "长短不一"),
        ({"ids": ["a", 7]}, "编号"),
        ({"documents": ["x", 7]}, "文本"),
        ({"metadatas": ["x", {}]}, "元数据"),
        ({"ids": "ab"}, "列表"),
    ],
)
async def test_a_bad_backup_is_refused_before_anything_is_touched(tmp_path, changes, word):
    """F9"""
    at = place(tmp_path, embedder=NEW)
    await fill(at.store, [fact(1)], OLD)
    before = await contents(at.store)
    path = published(at.backups, **changes)
    with pytest.raises(Corrupt, match=word):
        await restore(at, path)
    assert before.keys() == (await contents(at.store)).keys()
    assert [b.path for b in listed(at.backups)] == [path]


@pytest.mark.parametrize("text", ["{}", "", "[]", "null", '{"ids": ["a"], "docu', "不是 JSON", '{"ids": []} x'])
async def test_what_is_no_backup_is_refused(tmp_path, text):
    path = tmp_path / "embed_backup_20260101_000000.json"
    path.write_text(text, "utf-8")
    with pytest.raises(Corrupt):
        check(path)


async def test_a_changed_or_cut_file_does_not_fit_its_manifest(tmp_path):
    at = place(tmp_path, embedder=OLD)
    await fill(at.store, [fact(1)], OLD)
    made = await back_up(at, reason="manual")
    whole = made.path.read_bytes()
    made.path.write_bytes(whole.replace("第 1".encode(), "第 2".encode()))
    with pytest.raises(Corrupt, match="校验值"):
        check(made.path)
    check(made.path, deep=False)
    made.path.write_bytes(whole[:-5])
    with pytest.raises(Corrupt, match="大小"):
        check(made.path, deep=False)


async def test_rows_of_nobody_are_left_out_and_named(tmp_path):
    """F9: the published plugin restored them as rows that nobody can reach."""
    path = published(tmp_path / "backups", metadatas=[None, {"user_id": GROUP, "scope": "group"}])
    at = place(tmp_path, embedder=NEW)
    done = await restore(at, path)
    assert len(done.checked.problems) == 1
    assert set(await contents(at.store)) == {"b" * 32}


async def test_restore_replaces_all_under_todays_keys_with_the_model_of_today(tmp_path):
    at = place(tmp_path, embedder=NEW)
    await fill(at.store, [fact(1), fact(2)], OLD)
    done = await restore(at, published(at.backups))
    after = await contents(at.store)
    assert {i: m["user_id"] for i, (_, m, _) in after.items()} == {"a" * 32: "QQPlatform_Private_1", "b" * 32: GROUP}
    assert await whole_space(at.store, NEW)
    assert (done.rows, done.replaced, done.kept) == (2, 2, 0)
    assert check(done.backup.path).tally.rows == 2  # what stood there before


async def test_restore_of_one_scope_leaves_the_others_and_their_vectors_alone(tmp_path):
    at = place(tmp_path, embedder=NEW)
    rows_before = [fact(1), fact(2, key="QQPlatform_Private_2"), fact(3, key=GROUP, scope="group")]
    await fill(at.store, rows_before, NEW)
    calls = len(NEW.calls)
    done = await restore(at, published(at.backups), only="QQPlatform_Private_1")
    after = await contents(at.store)
    assert set(after) == {"a" * 32, fact(2).id, fact(3).id}
    assert (done.rows, done.replaced, done.kept) == (1, 1, 2)
    texts = {text for call in NEW.calls[calls:] for text in call.texts}
    assert rows_before[1].document not in texts
    await restore(at, published(at.backups), only="group")
    assert set(await contents(at.store)) == {"a" * 32, fact(2).id, "b" * 32}


async def test_restoring_one_scope_of_a_whole_backup_keeps_the_rest_that_is_in_it_too(tmp_path):
    at = place(tmp_path, embedder=NEW)
    await fill(at.store, [fact(1), fact(3, key=GROUP, scope="group")], NEW)
    made = await back_up(at, reason="manual")
    await (await at.store.open(COLLECTION)).delete([fact(1).id])
    await restore(at, made.path, only="user")
    assert set(await contents(at.store)) == {fact(1).id, fact(3).id}


async def test_a_dry_run_changes_nothing_and_tells_the_numbers(tmp_path):
    at = place(tmp_path, embedder=NEW)
    await fill(at.store, [fact(1)], OLD)
    path = published(at.backups)
    done = await restore(at, path, dry_run=True)
    assert (done.rows, done.replaced, done.kept) == (2, 1, 0)
    assert set(await contents(at.store)) == {fact(1).id}
    assert [b.path for b in listed(at.backups)] == [path]


async def test_a_restore_whose_service_dies_leaves_the_store_as_it_was_and_can_go_on(tmp_path):
    dying = Light(model="new", dimension=48, fail_after=12)
    at = place(tmp_path, embedder=Light(model="old", dimension=32))
    await fill(at.store, [fact(i) for i in range(1200)], at.embedder)
    made = await back_up(at, reason="manual")
    await (await at.store.open(COLLECTION)).delete([fact(i).id for i in range(700)])
    new = place(tmp_path, store=at.store, embedder=dying)
    with pytest.raises(EmbeddingUnavailable):
        await restore(new, made.path)
    assert set(await contents(at.store)) == {fact(i).id for i in range(700, 1200)}
    dying.fail_after = None
    assert (await restore(new, made.path)).rebuilt.resumed > 0
    assert set(await contents(at.store)) == {fact(i).id for i in range(1200)}


async def test_a_backup_of_another_collection_or_scope_that_is_none_is_refused(tmp_path):
    at = place(tmp_path, embedder=NEW)
    with pytest.raises(InvalidInput, match="集合"):
        await restore(at, published(tmp_path, collection="other"))
    with pytest.raises(InvalidInput, match="only-scope"):
        await restore(at, published(tmp_path), only="../x")


async def test_knowledge_comes_back_and_nothing_is_written_outside_its_folders(tmp_path):
    at = place(tmp_path / "data", embedder=NEW)
    (tmp_path / "data").mkdir()
    entries = [
        {"name": "knowledge/KNOWLEDGE_abc.md", "text": "正文"},
        {"name": "amos/shared/knowledge/global/k1.md", "text": "新的"},
        {"name": "../evil.md", "text": "x"},
        {"name": "knowledge/../../evil.md", "text": "x"},
        {"name": "/etc/evil.md", "text": "x"},
        {"name": ".env", "text": "x"},
    ]
    done = await restore(at, published(at.backups, knowledge=entries))
    assert done.knowledge == 2
    assert (tmp_path / "data" / "knowledge" / "KNOWLEDGE_abc.md").read_text("utf-8") == "正文"
    assert not list(tmp_path.rglob("evil.md"))


def test_a_backup_is_found_by_path_name_or_stem(tmp_path):
    path = published(tmp_path)
    for given_name in (str(path), path.name, path.stem):
        assert find(tmp_path, given_name) == path
    with pytest.raises(NotFound):
        find(tmp_path, "embed_backup_1")
    assert manifest_of(path).name == "embed_backup_20261130_131643.manifest"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.lists(JSON, max_size=5) | JSON, max_size=4), st.integers(1, 40))
def test_the_stream_reads_what_json_reads_whatever_the_block_size(tmp_path_factory, whole, block):
    path = tmp_path_factory.mktemp("stream") / "x.json"
    path.write_text(json.dumps(whole, ensure_ascii=False), "utf-8")
    old, stream._BLOCK = stream._BLOCK, block
    try:
        found = {}
        for event in events(path):
            if event.kind == "value":
                found[event.key] = event.value
            else:
                found.setdefault(event.key, [])
                if event.kind == "element":
                    found[event.key].append(event.value)
        assert found == whole
        for key, value in whole.items():
            if isinstance(value, list):
                assert list(elements(path, key)) == value
    finally:
        stream._BLOCK = old


def test_every_cut_of_a_backup_is_noticed(tmp_path):
    path = published(tmp_path)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(Corrupt):
            check(path)


def test_a_published_backup_reads_as_rows(tmp_path):
    found = list(rows(published(tmp_path)))
    assert [row.document for row in found] == ["喜欢乌龙茶", "养了一只猫"]
    assert found[0].metadata == {"user_id": "QQPlatform_Private_1", "scope": "user", "tags": "x"}


async def test_a_backup_without_facts_brings_back_the_rest_and_takes_no_fact_away(tmp_path):
    at = place(tmp_path, embedder=OLD)
    knowledge = tmp_path / "knowledge" / "KNOWLEDGE_abc.md"
    knowledge.parent.mkdir()
    knowledge.write_text("# 旧", "utf-8")
    await at.store.open(COLLECTION)
    made = await back_up(at, reason="manual")
    knowledge.write_text("# 后来写的", "utf-8")
    await fill(at.store, [fact(i) for i in range(5)], OLD)
    done = await restore(at, made.path)
    assert (done.rows, done.knowledge, len(await contents(at.store))) == (0, 1, 5)
    assert knowledge.read_text("utf-8") == "# 旧"


async def test_what_a_restore_into_an_empty_store_overwrites_was_backed_up_before(tmp_path):
    at = place(tmp_path, embedder=OLD)
    knowledge = tmp_path / "knowledge" / "KNOWLEDGE_abc.md"
    knowledge.parent.mkdir()
    knowledge.write_text("# 后来写的", "utf-8")
    path = published(tmp_path / "elsewhere", knowledge=[{"name": "knowledge/KNOWLEDGE_abc.md", "text": "# 旧"}])
    done = await restore(at, path)
    assert knowledge.read_text("utf-8") == "# 旧"
    assert "后来写的" in done.backup.path.read_text("utf-8")


async def test_a_backup_that_another_program_prunes_while_it_is_restored_comes_back_whole(tmp_path):
    pruned = []

    class Pruning(Light):
        async def embed(self, texts, **options):
            if not pruned and "喜欢乌龙茶" in texts:
                pruned.append(path.unlink())
            return await super().embed(texts, **options)

    at = place(tmp_path, embedder=Pruning(model="old", dimension=32))
    path = published(at.backups, knowledge=[{"name": "knowledge/KNOWLEDGE_abc.md", "text": "# 题"}])
    done = await restore(at, path)
    assert pruned
    assert (done.rows, done.knowledge) == (2, 1)
    assert not list(at.backups.glob(".part-*"))


async def test_a_row_that_is_touched_during_a_restore_keeps_its_owner(tmp_path):
    at = place(tmp_path, embedder=OLD)
    path = published(tmp_path)
    main = await fill(at.store, [fact(i) for i in range(3)], OLD)

    class Touching(Light):
        async def embed(self, texts, **options):
            if "喜欢乌龙茶" in texts:
                await main.add([Row("a" * 32, "x", {"user_id": "QQPlatform_Private_1"}, np.ones(32, np.float32))])
                await main.delete(["a" * 32])
            return await super().embed(texts, **options)

    await restore(place(tmp_path, store=at.store, embedder=Touching(model="old", dimension=32)), path)
    document, metadata, vector = (await contents(at.store))["a" * 32]
    assert (document, metadata["user_id"]) == ("喜欢乌龙茶", "QQPlatform_Private_1")
    assert vector.any()
