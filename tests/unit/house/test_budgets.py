"""The house stays small enough to hold in the head: file, function and folder sizes."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "amrita_plugin_memory"
FILES = sorted(PACKAGE.rglob("*.py"))


def body_lines(node):
    first = node.body[0]
    has_doc = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    start = first.end_lineno + 1 if has_doc else first.lineno
    return node.end_lineno - start + 1


def functions():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path.relative_to(ROOT), node


def p90(values):
    return sorted(values)[int(len(values) * 0.9)]


def test_no_file_passes_400_lines_and_most_stay_below_300():
    lengths = {path: path.read_text("utf-8").count("\n") for path in FILES}
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > 400} == {}
    assert p90(lengths.values()) <= 300


def test_no_function_passes_50_lines_and_most_stay_below_25():
    lengths = {(str(path), node.lineno, node.name): body_lines(node) for path, node in functions()}
    assert {where: n for where, n in lengths.items() if n > 50} == {}
    assert p90(lengths.values()) <= 25


def test_no_function_takes_more_than_four_positional_parameters():
    found = {}
    for path, node in functions():
        names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args) if arg.arg not in ("self", "cls")]
        decorated = any(
            isinstance(d, ast.Call) for d in node.decorator_list
        )  # click and the host hand in what they like
        if len(names) > 4 and not decorated:
            found[f"{path}:{node.lineno} {node.name}"] = names
    assert found == {}


def test_no_folder_holds_more_than_twelve_files():
    folders = {path.parent for path in FILES}
    crowded = {
        str(f.relative_to(ROOT)): n
        for f in folders
        if (n := sum(x.suffix == ".py" for x in f.iterdir() if x.name != "__init__.py")) > 12
    }
    assert crowded == {}


@pytest.mark.parametrize("word", ["Manager", "Helper", "Util"])
def test_no_class_of_ours_is_called_by_an_empty_word(word):
    # Names of the AMOS protocol's own API are given, not chosen.
    given = {"TaskManager", "TaskManagerOptions", "SecurityManager", "PortabilityManager", "AssetManager"}
    names = {
        node.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and word in node.name
    }
    assert names - given == set()


def test_no_module_has_mutable_state():
    found = []
    for path in FILES:
        tree = ast.parse(path.read_text("utf-8"))
        found += [f"{path.name}:{n.lineno}" for n in ast.walk(tree) if isinstance(n, ast.Global)]
        for node in tree.body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            final = isinstance(node, ast.AnnAssign) and "Final" in ast.unparse(node.annotation)
            if isinstance(value, ast.List | ast.Dict | ast.Set) and not final and names != ["__all__"]:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} {names}")
    assert found == []
