"""JavaScript syntax, for pages and for tools of Node roots: parsed, never run."""

from __future__ import annotations

import tree_sitter
import tree_sitter_javascript

from amrita_plugin_memory.amos.errors import ToolCodeError


def check(source: str) -> None:
    """Return when the source is well formed. Blocks for some milliseconds.

    Raises:
        ToolCodeError: with the line of the first fault.

    """
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_javascript.language()))
    root = parser.parse(source.encode()).root_node
    if root.has_error:
        raise ToolCodeError(f"JavaScript 代码有语法错误（第 {_first_fault(root) + 1} 行），请检查括号、引号和语句")


def _first_fault(root: tree_sitter.Node) -> int:
    node = root
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error or child.is_missing), None)
        if inner is None:
            break
        node = inner
    return node.start_point[0]
