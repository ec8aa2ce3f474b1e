from __future__ import annotations

import re

import pytest

from amrita_plugin_memory.amos.toolset.names import dotted, legal, snake
from amrita_plugin_memory.amos.toolset.service import specs


@pytest.mark.parametrize(
    "spelling", ["memory.replaceSoul", "memory.replace_soul", "memory_replace_soul", " memory.replaceSoul "]
)
def test_every_spelling_means_one_tool(spelling: str) -> None:
    assert legal(spelling) == "memory_replace_soul"
    assert dotted(spelling) == "memory.replace_soul"


def test_names_go_both_ways_for_every_tool() -> None:
    for name in specs():
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
        assert legal(dotted(name)) == name
        assert dotted(name).count(".") == 1


def test_arguments_of_the_reference_are_understood() -> None:
    assert [snake(key) for key in ("topK", "relPath", "userMsg", "codeFiles", "timeout_ms", "x")] == [
        "top_k",
        "rel_path",
        "user_msg",
        "code_files",
        "timeout_ms",
        "x",
    ]
