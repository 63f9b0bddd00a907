"""Gets a harness ready before there is a submission, which can then not put anything in the place of what it calls."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any


def bound(text: str, entry: str) -> Callable[..., Any]:
    """The function `entry` of a harness, with all of its imports done now instead of in each call.

    Modules of the grader that it is the first to import are its own: they are taken from `sys.modules`, so that who
    imports them later gets another copy.
    """
    imports = _Imports()
    module = imports.visit(ast.parse(text))
    module.body[:0] = imports.found
    before = set(sys.modules)
    space: dict[str, Any] = {"__name__": "harness"}
    exec(compile(ast.fix_missing_locations(module), "harness.py", "exec"), space)
    for name in sys.modules.keys() - before:
        if name.startswith("grader."):
            del sys.modules[name]
            package, _, own = name.rpartition(".")
            if package in sys.modules:
                vars(sys.modules[package]).pop(own, None)
    return space[entry]  # type: ignore[no-any-return]


class _Imports(ast.NodeTransformer):
    """Takes the imports out of functions and blocks."""

    def __init__(self) -> None:
        self.found: list[ast.stmt] = []

    def visit_Import(self, node: ast.Import) -> ast.Pass:
        self.found.append(node)
        return ast.Pass()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.Pass:
        self.found.append(node)
        return ast.Pass()
