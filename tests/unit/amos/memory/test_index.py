import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.amos import P, file_root, listing, scope

from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.amos.memory import Index, Knowledge, Tags, Workflows
from amrita_plugin_memory.amos.memory.entries import entry_for, keywords
from amrita_plugin_memory.kernel.errors import InvalidInput, NotFound

U1 = layout.user_dir("u1")
SIZE = 2_000  # entries that make an index big


@pytest.fixture
def files(tmp_path):
    return file_root(tmp_path)


@pytest.fixture
def index(files):
    return Index(files)


def on_disk(files):
    return json.loads((files.root / "index.json").read_text("utf-8"))


def put(files, index, name, text="# 杭州 hello", owner=U1):
    path = Knowledge(files).put(owner, "geo", name, text)
    index.put(path, text)
    return path


def big(files):
    rows = {
        f"users/u1/knowledge/d/e{at}.md": {"kind": "memory", "tags": ["old"], "keywords": ["x" * 40]}
        for at in range(SIZE)
    }
    files.write_json(layout.INDEX, rows)


def test_an_entry_is_what_the_reference_writes(files, index):
    put(files, index, "hangzhou", "# 杭州 hello_1\nhello")
    assert on_disk(files) == {
        "users/u1/knowledge/geo/hangzhou.md": {
            "kind": "memory", "type": "knowledge", "name": "geo/hangzhou", "keywords": ["杭州", "hello_1", "hello"],
            "tags": [], "uri": "amos://knowledge/geo/hangzhou",
        }
    }  # fmt: skip


def test_workflows_and_definitions_of_assets_are_entries_and_nothing_else_is():
    assert entry_for(P("shared/workflows/w.md").parts, "")["uri"] == "amos://workflows/w"
    asset = entry_for(P("users/a/assets/tools/t/definition.md").parts, "x")
    assert (asset["kind"], asset["asset_type"], asset["uri"]) == ("asset", "tool", "amos://assets/tool/t")
    for path in ("users/a/profile.md", "users/a/assets/tools/t/code.py", "users/a/knowledge/deep/er/x.md"):
        assert entry_for(P(path).parts, "") is None
    assert len(keywords("a " * 50)) == 20


def test_a_change_of_a_file_keeps_its_tags(files, index):
    path = put(files, index, "a")
    index.tag(path, "t")
    put(files, index, "a", "# anders")
    assert on_disk(files)[str(path)]["tags"] == ["t"]
    assert on_disk(files)[str(path)]["keywords"] == ["anders"]


def test_a_change_to_a_big_index_costs_one_line(files, index):
    big(files)
    before = (files.root / "index.json").read_bytes()
    path = put(files, index, "new")
    index.tag(path, "t")
    index.drop(P("users/u1/knowledge/d/e0.md"))
    assert (files.root / "index.json").read_bytes() == before
    assert index.pending() < 1000
    assert index.tags_of(str(path)) == ("t",)
    assert "users/u1/knowledge/d/e0.md" not in index.entries()
    assert len(index.entries()) == SIZE


def test_a_flush_folds_the_journal_in_and_removes_it(files, index):
    big(files)
    path = put(files, index, "new")
    index.tag(path, "t")
    index.untag(P("users/u1/knowledge/d/e1.md"), "old")
    seen = index.entries()
    index.flush()
    assert on_disk(files) == seen == index.entries()
    assert on_disk(files)[str(path)]["tags"] == ["t"]
    assert on_disk(files)["users/u1/knowledge/d/e1.md"]["tags"] == []
    assert index.pending() == 0
    assert listing(files.root) == ["index.json", "users"]


def test_two_index_objects_see_each_others_changes(files, index):
    big(files)
    other = Index(files)
    assert len(other.entries()) == SIZE
    index.tag(P("users/u1/knowledge/d/e1.md"), "new")
    assert other.tags_of("users/u1/knowledge/d/e1.md") == ("old", "new")
    index.flush()
    other.untag(P("users/u1/knowledge/d/e1.md"), "old")
    assert index.tags_of("users/u1/knowledge/d/e1.md") == ("new",)


def test_what_a_killed_flush_left_is_folded_in(files, index):
    big(files)
    path = put(files, index, "one")
    files.move(layout.INDEX_JOURNAL, P("index.journal.folding"))
    index.tag(path, "t")
    assert index.tags_of(str(path)) == ("t",)
    Index(files).flush()
    assert on_disk(files)[str(path)]["tags"] == ["t"]
    assert len(on_disk(files)) == SIZE + 1


def test_a_corrupt_index_is_kept_aside_and_made_anew_from_the_files(files, index):
    for name in ("a", "b"):
        put(files, index, name)
    (files.root / "index.json").write_text("{broken")
    put(files, index, "c")
    assert sorted(entry["name"] for entry in on_disk(files).values()) == ["geo/a", "geo/b", "geo/c"]
    assert (files.root / "index.json.bak").read_text() == "{broken"


def test_rebuilding_keeps_tags_and_forgets_what_is_gone(files, index):
    path = put(files, index, "a")
    index.tag(path, "t")
    files.write_text(layout.profile("u1"), "x")
    index.tag(layout.profile("u1"), "me")
    Workflows(files).put(layout.SHARED, "w", "# plan")
    Knowledge(files).put(U1, "geo", "b", "new by hand")
    gone = put(files, index, "gone")
    index.tag(gone, "t")
    files.delete(gone)
    assert index.rebuild() == 4
    found = on_disk(files)
    assert found[str(path)]["tags"] == ["t"]
    assert found["users/u1/profile.md"] == {"tags": ["me"]}
    assert found["shared/workflows/w.md"]["keywords"] == ["plan"]
    assert str(gone) not in found


def test_an_index_that_is_switched_off_writes_nothing(files):
    index = Index(files, enabled=False)
    put(files, index, "a")
    index.tag(P("x"), "t")
    index.flush()
    assert listing(files.root) == ["users"]


def test_entries_of_a_peer_are_tolerated(files, index):
    files.write_json(layout.INDEX, {"_meta": 1, "a.md": {"tags": ["t"]}, "b.md": {}, "c.md": {"tags": "odd"}})
    assert index.tagged("t") == ["a.md"]


def test_threads_lose_no_entry(files):
    big(files)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda at: (put(files, Index(files), f"n{at}"), at % 7 or Index(files).flush()), range(40)))
    index = Index(files)
    assert len(index.entries()) == SIZE + 40
    index.flush()
    assert len(on_disk(files)) == SIZE + 40


class TestTags:
    @pytest.fixture
    def tags(self, files, index):
        return Tags(files, index)

    def test_only_the_users_own_and_shared_files_are_listed(self, files, index, tags):
        for owner in (U1, layout.user_dir("u12"), layout.SHARED):
            tags.add(put(files, index, "a", owner=owner), "t")
        assert tags.paths(scope("u1"), "t") == ["shared/knowledge/geo/a.md", "users/u1/knowledge/geo/a.md"]

    @pytest.mark.parametrize(
        "target", ["users/u1/knowledge/geo/a.md", "amos://knowledge/geo/a", "amos://users/u1/knowledge/geo/a"]
    )
    def test_a_file_is_named_by_path_or_address(self, files, index, tags, target):
        path = put(files, index, "a")
        assert tags.place(scope(), target) == path

    @pytest.mark.parametrize(
        "target", ["users/u2/profile.md", "users/u1/nothing.md", "amos://users/u2/profile", "version.txt"]
    )
    def test_another_users_file_is_as_good_as_missing(self, files, tags, target):
        files.write_text(layout.profile("u2"), "x")
        files.write_text(P("version.txt"), "2.0.0")
        with pytest.raises(NotFound):
            tags.place(scope(), target)

    @pytest.mark.parametrize("target", ["../x", "/etc/passwd", "", "users/u1/../u2/profile.md"])
    def test_a_path_out_of_the_root_is_refused(self, tags, target):
        with pytest.raises(InvalidInput):
            tags.place(scope(), target)

    @pytest.mark.parametrize("tag", ["", " ", "a\nb", "x" * 65, None, "\u200b"])
    def test_a_tag_is_one_short_line(self, files, index, tags, tag):
        with pytest.raises(InvalidInput):
            tags.add(put(files, index, "a"), tag)

    def test_tagging_twice_is_tagging_once(self, files, index, tags):
        path = put(files, index, "a")
        assert [tags.add(path, "t"), tags.add(path, " t ")] == ["t", "t"]
        assert index.tags_of(str(path)) == ("t",)
        tags.remove(path, "t")
        assert tags.paths(scope(), "t") == []


def test_an_index_of_more_than_64_mib_is_healthy(files, index):
    files.write_json(layout.INDEX, {"a": {"note": "x" * (64 * 2**20)}, "users/u1/profile.md": {"tags": ["old"]}})
    put(files, index, "hangzhou")
    index.flush()
    assert index.tagged("old") == ["users/u1/profile.md"]
    assert sorted(on_disk(files)) == ["a", "users/u1/knowledge/geo/hangzhou.md", "users/u1/profile.md"]
    assert not (files.root / "index.json.bak").exists()


def test_tags_are_refused_where_there_is_no_index_to_keep_them(files):
    off = Index(files, enabled=False)
    tags, path = Tags(files, off), put(files, off, "hangzhou")
    for change in (tags.add, tags.remove):
        with pytest.raises(InvalidInput, match="enable_index"):
            change(path, "城市")
    assert listing(files.root / "users") == ["u1"]
