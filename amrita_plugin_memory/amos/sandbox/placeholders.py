"""``{{ENV.NAME}}`` in tool code: which names may be used, and how a value is bound. Pure.

A value is never pasted as code. Where a placeholder stands alone it becomes an identifier that the engine binds; inside
a string literal the value is written with escapes, so that it reads back as itself and cannot end the literal. In a
comment nothing happens. The lexer below only has to know where literals and comments are.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import quote, quote_plus

from amrita_plugin_memory.amos.errors import EnvVarDeniedError

PLACEHOLDER: Final = re.compile(r"\{\{ENV\.([A-Za-z_][A-Za-z0-9_]{0,127})\}\}")
NEVER: Final = (
    "EMBEDDING_*", "LLM_*", "OPENAI_*", "DEEPSEEK_*", "ANTHROPIC_*", "VECTOR_DB_*", "WEBUI_*", "DATABASE*",
    "SQLALCHEMY*", "AMRITA_*", "AMOS_*", "NONEBOT_*", "ONEBOT_*", "LD_*", "PYTHON*", "SSH_*",
)  # fmt: skip
MIN_SECRET: Final = 6  # a shorter value is too common a text to be scrubbed
MASK: Final = "***"
_LITERAL: Final = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<prefix>(?i:\b(?:[rbuf]|br|rb|fr|rf))?)(?P<quote>'''|\"\"\"|'|\")", re.DOTALL
)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:/+=@~,;?&%*() -]*\Z")


@dataclass(frozen=True, slots=True)
class Bound:
    """Code without placeholders, the names to bind in it, and the values to keep out of what it says."""

    source: str
    bindings: dict[str, str]
    secrets: tuple[str, ...]


def bind(source: str, environment: Mapping[str, str], whitelist: Sequence[str], declared: Sequence[str] = ()) -> Bound:
    """Replace every placeholder of tool code.

    Args:
        source: the code as it is stored.
        environment: where values are looked up.
        whitelist: globs of the operator; a name must meet one.
        declared: the manifest's ``env_vars``; when there are any, a name must be among them as well.

    Raises:
        EnvVarDeniedError: a name that is not allowed, not set, or cannot be written where it stands. Nothing was run.

    """
    if "{{ENV." not in source:
        return Bound(source, {}, ())
    names = dict.fromkeys(match[1] for match in PLACEHOLDER.finditer(source))
    values = {name: _value(name, environment, whitelist, declared) for name in names}
    bindings = {f"_amos_env_{place}": name for place, name in enumerate(values)}
    known = {name: identifier for identifier, name in bindings.items()}
    pieces = [_replaced(text, kind, values, known) for text, kind in _segments(source)]
    bound = {identifier: values[name] for identifier, name in bindings.items()}
    return Bound("".join(pieces), bound, tuple(values.values()))


def names_in(source: str) -> list[str]:
    """Names that the placeholders of a text ask for, in order."""
    return list(dict.fromkeys(match[1] for match in PLACEHOLDER.finditer(source)))


def may_use(name: str, whitelist: Sequence[str], declared: Sequence[str] = ()) -> bool:
    """True when the operator, the manifest and the fixed list all agree."""
    if any(fnmatchcase(name.upper(), pattern) for pattern in NEVER) or (declared and name not in declared):
        return False
    return any(fnmatchcase(name, pattern) for pattern in whitelist)


def scrub(text: str, secrets: Sequence[str]) -> str:
    """Text with every secret value, its URL-quoted and its base64 form replaced."""
    for form in sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def _value(name: str, environment: Mapping[str, str], whitelist: Sequence[str], declared: Sequence[str]) -> str:
    if not may_use(name, whitelist, declared):
        raise EnvVarDeniedError(f"环境变量 {name} 不在 env_whitelist 名单里，请让管理员加入")
    if name not in environment:
        raise EnvVarDeniedError(f"环境变量 {name} 没有设置，请让管理员在 .env 里填写")
    return environment[name]


def _segments(source: str) -> Iterator[tuple[str, str]]:
    """The source in pieces: ("…", "code"), ("…", "#") and string literals as ("…", prefix + quote)."""
    at = 0
    while (match := _LITERAL.search(source, at)) is not None:
        yield source[at : match.start()], "code"
        if match["comment"] is not None:
            yield match[0], "#"
            at = match.end()
            continue
        end = _end_of_literal(source, match.end(), match["quote"])
        yield source[match.start() : end], match["prefix"].lower() + match["quote"]
        at = end
    yield source[at:], "code"


def _end_of_literal(source: str, at: int, quote_sign: str) -> int:
    while at < len(source):
        if source[at] == "\\":
            at += 2
        elif source.startswith(quote_sign, at):
            return at + len(quote_sign)
        elif source[at] == "\n" and len(quote_sign) == 1:
            return at
        else:
            at += 1
    return len(source)


def _replaced(text: str, kind: str, values: Mapping[str, str], known: Mapping[str, str]) -> str:
    if kind == "#":
        return text
    if kind == "code":
        return PLACEHOLDER.sub(lambda match: known[match[1]], text)
    return PLACEHOLDER.sub(lambda match: _in_literal(match[1], values[match[1]], kind.rstrip("'\"")), text)


def _in_literal(name: str, value: str, prefix: str) -> str:
    if "r" in prefix:
        if not _PLAIN.match(value):
            raise EnvVarDeniedError(f"环境变量 {name} 的值不能写进 r 开头的字符串，请改用普通字符串")
        return value
    if "b" in prefix and not value.isascii():
        raise EnvVarDeniedError(f"环境变量 {name} 的值不能写进 b 开头的字节串，请改用普通字符串再编码")
    return "".join(sign if sign.isascii() and sign.isalnum() else _escape(sign) for sign in value)


def _escape(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _forms(secret: str) -> set[str]:
    if len(secret) < MIN_SECRET:
        return set()
    data = secret.encode("utf-8", "surrogatepass")
    packed = {base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()}
    return {secret, quote(data, safe=""), quote(data), quote_plus(data), *packed, *(p.rstrip("=") for p in packed)}
