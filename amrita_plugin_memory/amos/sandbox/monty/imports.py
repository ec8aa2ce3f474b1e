"""Imports of tool code that Monty has no module for, bound to the prelude's objects instead. Pure.

Monty cannot let a class of the sandbox live in a module, so ``import urllib.request`` becomes a binding of a prelude
object. The syntax tree only says where an import stands; the text is replaced in place, and line numbers stay. Code
that Python itself cannot parse is left as it is: the engine will say what is wrong with it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Final

from .prelude import MODULES

BUILT_IN: Final = frozenset(
    ("json", "re", "datetime", "math", "random", "hashlib", "base64", "csv", "collections", "itertools", "functools",
     "typing", "dataclasses", "asyncio", "pathlib", "time", "copy", "decimal", "bisect", "binascii", "unicodedata",
     "tomllib", "os", "sys", "__future__", "urllib")
)  # fmt: skip
_NAMES: Final = frozenset(module.split(".")[0] for module in MODULES)
_IMPORT: Final = re.compile(r"\b(?:import|from)\b")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Code with its imports bound, and the prelude parts it needs, in order."""

    source: str
    modules: tuple[str, ...] = ()


def rewrite(source: str) -> Rewritten:
    """Bind what the prelude offers."""
    if not _IMPORT.search(source) or not any(name in source for name in _NAMES):
        return Rewritten(source)
    lines = source.split("\n")
    needed: dict[str, None] = {}
    for node in sorted(_imports(source), key=lambda node: node.lineno, reverse=True):
        statements, modules = _bound(node)
        if modules and _replace(lines, node, statements):
            needed |= dict.fromkeys(modules)
    return Rewritten("\n".join(lines), tuple(dict.fromkeys(MODULES[module][0] for module in needed)))


def unknown_modules(source: str) -> list[str]:
    """Top-level names of imported modules that neither Monty nor the prelude has."""
    found: dict[str, None] = {}
    for node in _imports(source):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        found |= {name: None for name in names if name not in MODULES and name.split(".")[0] not in BUILT_IN}
    return list(found)


def _imports(source: str) -> list[ast.Import | ast.ImportFrom]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def _bound(node: ast.Import | ast.ImportFrom) -> tuple[list[str], list[str]]:
    """Statements that stand for the import, and the prelude modules among them."""
    if isinstance(node, ast.ImportFrom):
        return _bound_from(node)
    statements: list[str] = []
    modules: list[str] = []
    for alias in node.names:
        if alias.name not in MODULES:
            statements.append(f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))
            continue
        modules.append(alias.name)
        whole = MODULES[alias.name][1]
        top = alias.name.split(".")[0]
        statements.append(f"{alias.asname} = {whole}" if alias.asname else f"{top} = {whole.split('.')[0]}")
    return statements, modules


def _bound_from(node: ast.ImportFrom) -> tuple[list[str], list[str]]:
    module = node.module or ""
    if node.level or any(alias.name == "*" for alias in node.names):
        return [], []
    statements: list[str] = []
    modules: list[str] = []
    for alias in node.names:
        inner = f"{module}.{alias.name}"
        if module not in MODULES and inner not in MODULES:
            return [], []
        modules.append(module if module in MODULES else inner)
        where = f"{MODULES[module][1]}.{alias.name}" if module in MODULES else MODULES[inner][1]
        statements.append(f"{alias.asname or alias.name} = {where}")
    return statements, modules


def _replace(lines: list[str], node: ast.Import | ast.ImportFrom, statements: list[str]) -> bool:
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    if last > first and tail.strip() and not tail.lstrip().startswith("#"):
        return False  # something else stands behind an import of several lines
    lines[first : last + 1] = [head + "; ".join(statements) + tail, *[""] * (last - first)]
    return True
