from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.errors import EnvVarDeniedError
from amrita_plugin_memory.amos.sandbox.placeholders import bind, may_use, scrub

HARD = "a\"b'c\n{x}\\ 中文 {y!r}"
ANY = ("*",)


def evaluated(source: str, value: str) -> object:
    """What an expression with a placeholder means, read by Python's own parser (never run)."""
    bound = bind(f"x = {source}\n", {"KEY": value}, ANY)
    node = ast.parse(bound.source).body[0].value  # type: ignore[attr-defined]
    if isinstance(node, ast.Name):
        return bound.bindings[node.id]
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value for part in node.values)  # type: ignore[attr-defined]
    return ast.literal_eval(node)


@pytest.mark.parametrize("form", ["'{}'", '"{}"', "'''{}'''", '"""{}"""', "{}", "f'{}'", 'F"{}"', "u'{}'"])
@pytest.mark.parametrize("value", [HARD, "", "plain", "'''", '"""', "\\", "{{", "\r\n", "\x00\x7f", "😀"])
def test_a_value_reads_back_as_itself_wherever_it_stands(form: str, value: str) -> None:
    assert evaluated(form.format("{{ENV.KEY}}"), value) == value


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.sampled_from(["'{}'", '"{}"', "'''{}'''", "{}", "f'{}'"]),
)
def test_no_value_ever_changes_the_shape_of_the_code(value: str, form: str) -> None:
    assert evaluated(form.format("{{ENV.KEY}}"), value) == value


def test_text_around_a_placeholder_stays() -> None:
    assert evaluated('"https://a/?k={{ENV.KEY}}&q=\\"x\\""', "v'") == 'https://a/?k=v\'&q="x"'


def test_bytes_take_ascii_values_and_refuse_others() -> None:
    assert evaluated("b'{{ENV.KEY}}'", "a'b\\") == b"a'b\\"
    with pytest.raises(EnvVarDeniedError, match="字节串"):
        evaluated("b'{{ENV.KEY}}'", "中")


def test_a_raw_literal_takes_plain_values_only() -> None:
    assert evaluated("r'{{ENV.KEY}}'", "a-b_c/1=") == "a-b_c/1="
    with pytest.raises(EnvVarDeniedError, match="r 开头"):
        evaluated("r'{{ENV.KEY}}'", "a'b")


def test_a_comment_is_left_alone_and_so_is_its_quote() -> None:
    bound = bind("# it's {{ENV.KEY}}\nx = '{{ENV.KEY}}'\n", {"KEY": "v"}, ANY)
    assert bound.source == "# it's {{ENV.KEY}}\nx = 'v'\n"


def test_a_name_needs_the_operators_list() -> None:
    with pytest.raises(EnvVarDeniedError, match="WEATHER_KEY"):
        bind("x = '{{ENV.WEATHER_KEY}}'", {"WEATHER_KEY": "v"}, ())
    assert bind("x = '{{ENV.WEATHER_KEY}}'", {"WEATHER_KEY": "v"}, ("WEATHER_*",)).source == "x = 'v'"


def test_a_manifest_that_names_variables_narrows_the_list() -> None:
    assert may_use("A_KEY", ("A_*",), ())
    assert may_use("A_KEY", ("A_*",), ("A_KEY",))
    assert not may_use("A_KEY", ("A_*",), ("B_KEY",))
    assert not may_use("A_KEY", ("B_*",), ("A_KEY",))


@pytest.mark.parametrize(
    "name",
    [
        "EMBEDDING_MODEL_API_KEY",
        "OPENAI_API_KEY",
        "DATABASE_URL",
        "SQLALCHEMY_DATABASE_URL",
        "LD_PRELOAD",
        "webui_password",
    ],
)
def test_the_programs_own_secrets_are_never_bound_whatever_the_list_says(name: str) -> None:
    with pytest.raises(EnvVarDeniedError):
        bind(f"x = '{{{{ENV.{name}}}}}'", {name: "v"}, ANY)


def test_a_variable_that_is_not_set_is_refused_before_anything_runs() -> None:
    with pytest.raises(EnvVarDeniedError, match="没有设置"):
        bind("x = {{ENV.NOPE}}", {}, ANY)


def test_secrets_are_scrubbed_in_every_form_they_are_likely_to_take() -> None:
    secret = "s3cr/t +key中"
    text = "s3cr/t +key中 s3cr%2Ft%20%2Bkey%E4%B8%AD s3cr%2Ft+%2Bkey%E4%B8%AD czNjci90ICtrZXnkuK0= short"
    assert scrub(text, [secret, "short"]) == "*** *** *** *** short"


def test_code_without_placeholders_is_not_touched() -> None:
    source = "x = '{{ENV}}' + \"{{OTHER.X}}\"  # {{\n"
    assert bind(source, {}, ()).source == source
