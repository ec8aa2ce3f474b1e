"""Nothing a tool says is executed, compiled or unpickled in the program's own process."""

from __future__ import annotations

import ast
from pathlib import Path

AMOS = Path(__file__).resolve().parents[2] / "amrita_plugin_memory" / "amos"
FORBIDDEN = {"exec", "eval", "compile", "__import__"}
MODULES = {"pickle", "marshal", "shelve", "runpy", "code", "codeop"}


def calls(path: Path) -> set[str]:
    """Built-ins that run code and modules that unpack it, as a file uses them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN:
            found.add(node.func.id)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & MODULES
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            found.add(node.module)
    return found


def test_only_the_confined_child_executes_code() -> None:
    child = AMOS / "sandbox" / "inside" / "child.py"
    found = {path.relative_to(AMOS): used for path in AMOS.rglob("*.py") if path != child and (used := calls(path))}
    assert found == {}
    assert calls(child) == {"exec", "compile"}


def test_what_runs_inside_imports_the_standard_library_only_and_nobody_imports_it() -> None:
    inside = AMOS / "sandbox" / "inside"
    for path in inside.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                assert not (node.module or "").startswith("amrita_plugin_memory"), path.name
    others = [path for path in AMOS.rglob("*.py") if inside not in path.parents]
    assert [path.name for path in others if "sandbox.inside" in path.read_text("utf-8")] == []
