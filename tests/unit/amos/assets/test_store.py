from __future__ import annotations

import json
from pathlib import Path

import pytest

from amrita_plugin_memory.amos.assets import Asset, AssetDraft, AssetStore, AssetUpdate
from amrita_plugin_memory.amos.errors import AssetExistsError, AssetNotFoundError, InvalidAssetError
from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.kernel.scope import Scope

ME = Scope("u1")
HOME = layout.user_dir("u1")


@pytest.fixture
def store(tmp_path: Path) -> AssetStore:
    return AssetStore(FileRoot.open(tmp_path, sync=False))


def make(store: AssetStore, name: str = "w", *, owner: object = HOME, kind: str = "tool", **draft: object) -> Asset:
    asset = store.at(owner, kind, name)  # type: ignore[arg-type]
    given = {"definition": "# 天气", "code_files": {"code.py": "1"}, **draft}
    store.create(asset, AssetDraft(**given), author="u1", now="t1")  # type: ignore[arg-type]
    return asset


def test_an_asset_stands_on_the_disk_as_the_protocol_says(store: AssetStore, tmp_path: Path) -> None:
    asset = make(store, metadata={"tags": ["w"]}, schema={"type": "object", "properties": {}})
    folder = tmp_path / "users/u1/assets/tools/w"
    assert sorted(path.name for path in folder.iterdir()) == [
        "code.py",
        "definition.md",
        "metadata.json",
        "schema.json",
    ]
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata == {
        "created_at": "t1", "updated_at": "t1", "version": 1, "author": "u1", "tags": ["w"], "dependencies": [],
        "last_used": None, "files": ["code.py"],
    }  # fmt: skip
    assert store.read_schema(asset) == {"type": "object", "properties": {}}
    assert asset.uri == "amos://assets/tool/w"
    assert (folder.stat().st_mode & 0o777, (folder / "code.py").stat().st_mode & 0o777) == (0o700, 0o600)


def test_pages_and_apps_have_their_own_definition_files(store: AssetStore, tmp_path: Path) -> None:
    make(store, "p", kind="page", code_files={"index.html": "<p>", "js/app.js": "1"})
    make(store, "a", kind="app", definition="{}")
    assert (tmp_path / "users/u1/assets/pages/p/description.md").exists()
    assert (tmp_path / "users/u1/assets/APPs/a/manifest.json").exists()
    assert store.file_names(store.at(HOME, "page", "p")) == ["index.html", "js/app.js"]


def test_a_name_is_taken_once(store: AssetStore) -> None:
    make(store)
    with pytest.raises(AssetExistsError):
        make(store)


def test_a_failed_creation_leaves_nothing(store: AssetStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: FileRoot, rel: object, value: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(FileRoot, "write_json", broken)
    with pytest.raises(OSError, match="full"):
        make(store)
    monkeypatch.undo()
    assert store.all(ME) == []
    assert [p for p in (tmp_path / "users/u1/assets/tools").iterdir() if p.is_dir()] == []


def test_an_update_keeps_the_old_version_whole_and_old_ones_are_pruned(store: AssetStore) -> None:
    asset = make(store, metadata={"tags": ["w"]}, code_files={"code.py": "v1", "lib.py": "x"})
    store.update(asset, AssetUpdate(code_files={"code.py": "v2", "lib.py": None, "new.py": "n"}), now="t2")
    assert store.file_names(asset) == ["code.py", "new.py"]
    assert store.read_metadata(asset)["files"] == ["code.py", "new.py"]
    assert store.files.read_text(asset.folder / "backup/v1/code.py") == "v1"
    assert store.files.read_text(asset.folder / "backup/v1/lib.py") == "x"
    for n in range(3, 15):
        store.update(asset, AssetUpdate(code_files={"code.py": f"v{n}"}), now="t")
    assert store.backups(asset) == [f"v{n}" for n in range(4, 14)]
    assert store.read_metadata(asset)["tags"] == ["w"]


def test_a_refused_update_changes_nothing(store: AssetStore) -> None:
    asset = make(store)
    with pytest.raises(InvalidAssetError):
        store.update(asset, AssetUpdate(code_files={"code.py": "new", "../x": "evil"}), now="t2")
    with pytest.raises(InvalidAssetError):
        store.update(asset, AssetUpdate(code_files={"code.py": "new"}, metadata={"a": {1}}), now="t2")
    assert (store.read_file(asset, "code.py"), store.backups(asset)) == ("1", [])


def test_the_users_own_asset_hides_the_shared_one_of_the_same_name(store: AssetStore) -> None:
    make(store, owner=layout.SHARED, code_files={"code.py": "shared"})
    make(store, "other", owner=layout.SHARED)
    assert store.read_file(store.find(ME, "tool", "w"), "code.py") == "shared"
    make(store, code_files={"code.py": "mine"})
    assert store.read_file(store.find(ME, "tool", "w"), "code.py") == "mine"
    assert [(a.name, a.is_shared) for a in store.all(ME)] == [("other", True), ("w", False)]
    assert store.find(Scope("u2"), "tool", "w").is_shared


def test_another_users_asset_is_not_there(store: AssetStore) -> None:
    make(store, owner=layout.user_dir("u12"))
    with pytest.raises(AssetNotFoundError):
        store.find(ME, "tool", "w")
    assert store.all(ME) == []


@pytest.mark.parametrize("name", ["../../../../etc/passwd", "/etc/passwd", "backup/v1/code.py", "nope.py", ""])
def test_only_files_of_the_asset_are_read(store: AssetStore, name: str) -> None:
    asset = make(store)
    with pytest.raises((AssetNotFoundError, InvalidAssetError)):
        store.read_file(asset, name)


def test_a_link_in_an_asset_is_not_followed(store: AssetStore, tmp_path: Path) -> None:
    asset = make(store)
    (tmp_path / "secret").write_text("s")
    (tmp_path / "users/u1/assets/tools/w/lib.py").symlink_to(tmp_path / "secret")
    with pytest.raises(Exception, match="链接"):
        store.read_file(asset, "lib.py")
    assert store.file_names(asset) == ["code.py"]


def test_a_tool_of_an_older_root_keeps_its_schema_in_the_metadata(store: AssetStore) -> None:
    asset = make(store, metadata={"schema": {"type": "object"}})
    assert store.read_schema(asset) == {"type": "object"}


def test_deleting_takes_the_backups_too_and_says_whether_there_was_anything(store: AssetStore, tmp_path: Path) -> None:
    asset = make(store)
    store.update(asset, AssetUpdate(definition="new"), now="t2")
    assert store.delete(asset)
    assert not store.delete(asset)
    assert not (tmp_path / "users/u1/assets/tools/w").exists()
