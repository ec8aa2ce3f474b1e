import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amrita_plugin_memory.amos.ground import names
from amrita_plugin_memory.kernel.errors import InvalidName

POISON = [
    "..",
    "/",
    "\\",
    "\0",
    "\n",
    ":",
    "*",
    "?",
    '"',
    "<",
    ">",
    "|",
    "%",
    "$",
    "~",
    "`",
    ";",
    "\u202e",
    "\u200b",
    "\ud800",
]
hostile = st.one_of(
    st.text(min_size=0, max_size=20),
    st.builds(lambda a, b, c: a + b + c, st.text(max_size=5), st.sampled_from(POISON), st.text(max_size=5)),
    st.sampled_from(
        [
            "",
            " ",
            ".",
            "..",
            "../..",
            "/etc/passwd",
            "C:\\x",
            "con",
            "NUL.txt",
            "COM¹",
            "a" * 256,
            "杭" * 86,
            "x.",
            "x ",
            ".x",
        ]
    ),
)


@settings(max_examples=1000)
@given(hostile)
def test_a_hostile_name_is_refused_or_is_one_component_on_every_system(name):
    try:
        part = names.component(name, what="测试", suffix=".md")
    except InvalidName:
        return
    for kind in (PurePosixPath, PureWindowsPath):
        path = kind("root") / part
        assert path.parts == ("root", part)
        assert path.parent == kind("root")
    assert not PureWindowsPath(part).is_reserved()
    assert part == unicodedata.normalize("NFC", name)
    assert len((part + ".md.lock").encode()) <= names.MAX_BYTES
    assert part.isprintable()
    assert part[0] != "."
    assert part[-1] not in ". "
    assert part.strip()


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "../x", "a/b", "a\\b", "a\nb", "ab\n", "a\0", "con", "Aux.md", "LPT9", "COM¹", "x.", "x ", " x", ".x", "a:b",
     "a*", "杭" * 86, "x" * 253, "\u200b", "a\u202eb", "\u3164", "\u0301a", "\ud800", 5, None, b"x"],
)  # fmt: skip
def test_what_is_no_component_is_refused(name):
    with pytest.raises(InvalidName):
        names.component(name, what="测试", suffix=".md")


@pytest.mark.parametrize(
    "name",
    [
        "user_1",
        "2026-08-22-demo",
        "杭州",
        "QQPlatform_Private_1",
        "C++",
        "a b",
        "é",
        "한국어",
        "ひらがな",
        "x.md",
        "console",
    ],
)
def test_ordinary_names_of_every_script_are_kept(name):
    assert names.component(name, what="测试") == name
    assert names.is_component(name)


def test_both_ways_to_write_an_accent_are_one_name():
    assert names.component("e\u0301", what="测试") == names.component("é", what="测试")


def test_names_that_meet_on_a_case_blind_disk_have_one_key():
    assert names.fold("Straße") == names.fold("STRASSE")
    assert names.fold("Case") == names.fold("case") != names.fold("cast")
