from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.sandbox.monty.imports import rewrite, unknown_modules


def test_an_import_of_a_prelude_module_becomes_a_binding() -> None:
    assert rewrite("import urllib.request, json\nx = 1\n").source == "urllib = _amos_urllib; import json\nx = 1\n"
    assert rewrite("import urllib.parse as p").source == "p = _amos_urllib.parse"
    assert (
        rewrite("from urllib.request import urlopen as u, Request").source
        == "u = _amos_urllib.request.urlopen; Request = _amos_urllib.request.Request"
    )
    assert (
        rewrite("from urllib import parse, request").source
        == "parse = _amos_urllib.parse; request = _amos_urllib.request"
    )
    assert rewrite("import html").modules == ("html",)


def test_line_numbers_stay_when_an_import_spans_lines() -> None:
    source = "from urllib.parse import (\n    quote,\n    urlencode,\n)\nx = 1\n"
    assert (
        rewrite(source).source
        == "quote = _amos_urllib.parse.quote; urlencode = _amos_urllib.parse.urlencode\n\n\n\nx = 1\n"
    )


def test_imports_in_functions_and_behind_semicolons_are_found() -> None:
    assert (
        rewrite("def f():\n    import html; return html\n").source == "def f():\n    html = _amos_html; return html\n"
    )
    assert rewrite("a = '中'; import html").source == "a = '中'; html = _amos_html"


def test_words_in_strings_and_comments_are_not_imports() -> None:
    source = "x = 'import html'  # import html\n"
    assert rewrite(source).source == source


def test_what_the_engine_has_itself_is_left_alone() -> None:
    source = "import json, re\nfrom urllib.parse import *\n"
    assert rewrite(source).source == source


@given(st.text(max_size=200) | st.from_regex(r"(import|from) [a-z.,() *\n]{0,40}", fullmatch=True))
def test_no_text_makes_the_rewriter_fail_and_line_counts_stay(source: str) -> None:
    assert rewrite(source).source.count("\n") == source.count("\n")


def test_bombs_are_left_to_the_engine() -> None:
    for bomb in ("import html\n" + "(" * 9000, "import html\nx = " + "-" * 60_000 + "1", "import html\n\0"):
        assert rewrite(bomb).source == bomb or ast.parse(rewrite(bomb).source)


def test_modules_nobody_has_are_named() -> None:
    assert unknown_modules("import json, numpy\nfrom PIL import Image\nimport urllib.request, zlib\n") == [
        "numpy",
        "PIL",
        "zlib",
    ]
