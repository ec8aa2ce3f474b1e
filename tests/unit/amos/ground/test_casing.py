import dataclasses

import pytest
from support.amos import P, file_root

from amrita_plugin_memory.amos.ground.casing import Spellings, is_blind
from amrita_plugin_memory.kernel.errors import InvalidName


def test_on_a_blind_disk_another_spelling_of_a_name_is_refused(tmp_path):
    files = dataclasses.replace(file_root(tmp_path), spellings=Spellings())
    files.write_text(P("users/Alice/profile.md"), "x")
    for path in ("users/alice/profile.md", "USERS/Alice/profile.md", "users/Alice/PROFILE.md"):
        with pytest.raises(InvalidName):
            files.read(P(path))
        with pytest.raises(InvalidName):
            files.write_text(P(path), "y")
    assert files.read_text(P("users/Alice/profile.md")) == "x"
    files.write_text(P("users/Bob/profile.md"), "x")


def test_a_new_name_is_seen_at_once(tmp_path):
    files = dataclasses.replace(file_root(tmp_path), spellings=Spellings())
    files.write_text(P("d/a.md"), "x")
    files.delete(P("d/a.md"))
    files.write_text(P("d/A.md"), "x")
    with pytest.raises(InvalidName):
        files.write_text(P("d/a.md"), "x")


def test_a_disk_is_asked_for_what_it_does(tmp_path):
    (tmp_path / "Folder").mkdir()
    assert is_blind(tmp_path / "Folder") == (tmp_path / "fOLDER").exists()
    assert not is_blind(tmp_path / "123")
