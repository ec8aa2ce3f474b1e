from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.assets import rules
from amrita_plugin_memory.amos.errors import InvalidAssetError
from amrita_plugin_memory.kernel.errors import InvalidInput, InvalidName


@pytest.mark.parametrize(
    "name", ["", "a b", "../x", "a/b", "ab\n", "中文", "a.b", "CON", "x" * 65, None, 3, ".x", "a\x00"]
)
def test_a_name_outside_the_protocols_alphabet_is_refused(name: object) -> None:
    with pytest.raises(InvalidName):
        rules.check_name(name)


@given(st.text(max_size=80))
def test_whatever_is_accepted_as_a_name_is_a_plain_ascii_component(name: str) -> None:
    try:
        checked = rules.check_name(name)
    except InvalidName:
        return
    assert checked == name
    assert checked.isascii()
    assert not set(checked) & set("/\\.:\n ")


@pytest.mark.parametrize(
    "name",
    [
        "metadata.json",
        "METADATA.json",
        "schema.json",
        "definition.md",
        "backup/x",
        "Backup/v1/code.py",
        "../x",
        "/etc/x",
        "a//b",
        "a\\b",
        "",
        "./x",
        "a/../b",
        ".hidden",
        "c:x",
        "a\n",
        "x" * 300,
        "a/b/c/d/e/f/g/h/i",
    ],
)
def test_a_file_name_that_leaves_the_asset_or_is_ours_is_refused(name: str) -> None:
    with pytest.raises(InvalidAssetError):
        rules.check_files("tool", {name: "x"})


def test_files_that_differ_only_by_case_are_refused() -> None:
    with pytest.raises(InvalidAssetError, match="大小写"):
        rules.check_files("page", {"App.js": "", "app.js": ""})


def test_files_are_bounded_in_number_and_size() -> None:
    with pytest.raises(InvalidAssetError, match="最多"):
        rules.check_files("page", {f"f{n}.js": "" for n in range(65)})
    with pytest.raises(InvalidAssetError, match="超过"):
        rules.check_files("page", {"a.js": "x" * 600_000})
    with pytest.raises(InvalidAssetError, match="文字"):
        rules.check_files("page", {"a.js": b"x"})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("version", "number"), [(1, 1), ("v1", 1), ("12", 12), ("v0.1", 0), (None, 0), (True, 0), (-3, 0), ("vv2", 0)]
)
def test_versions_are_read_in_both_forms(version: object, number: int) -> None:
    assert rules.version_number(version) == number


def test_an_update_moves_the_version_and_keeps_tags_and_unknown_keys() -> None:
    first = rules.first_metadata(
        {"tags": ["w"], "x": 1, "version": "v1", "author": "evil"}, author="u", now="t1", files=["code.py"]
    )
    assert (first["author"], first["version"], first["created_at"], first.get("status")) == (
        "u",
        "v1",
        "t1",
        None,
    )
    second = rules.next_metadata(
        first, {"x": None, "y": 2, "version": 99, "created_at": "no"}, now="t2", files=["code.py"]
    )
    assert (second["version"], second["created_at"], second["updated_at"], second["tags"], second["y"]) == (
        2,
        "t1",
        "t2",
        ["w"],
        2,
    )
    assert "x" not in second


def test_old_backups_are_dropped_by_number_not_by_letter() -> None:
    found = [f"v{n}" for n in range(1, 13)] + ["notes"]
    assert rules.backups_to_drop(found) == ["v1", "v2"]


def test_a_status_that_does_not_exist_is_refused_and_a_strange_stored_one_does_not_run() -> None:
    with pytest.raises(InvalidInput):
        rules.first_metadata({"status": "root"}, author="u", now="t", files=[])
    assert rules.status({"status": "weird"}) == "draft"
    assert rules.status({}) == "active"


@pytest.mark.parametrize("schema", [[], "x", {"a": float("nan")}, {"a": {1}}, {"a": "x" * 40_000}])
def test_a_schema_that_is_no_small_json_object_is_refused(schema: object) -> None:
    with pytest.raises(InvalidAssetError):
        rules.check_schema(schema)


def test_a_description_is_one_bounded_line() -> None:
    assert rules.description({}, "# 天气\n\n查天气") == "天气"
    assert rules.description({"description": "a\nb\u202ec"}, "") == "a bc"
    assert len(rules.description({"description": "x" * 999}, "")) == 400
