"""Which names a cell gives a value when it runs, and by which statement."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

__all__ = ["bindings"]


def bindings(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Names and statements at module level, also inside its `if`, `try`, `with`, `match` and loops, in their order."""
    for statement in _statements(module.body):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield statement.name, statement
            case ast.Import() | ast.ImportFrom():
                yield from ((alias.asname or alias.name, statement) for alias in statement.names)
            case ast.Assign():
                yield from ((name, statement) for name in _names(statement.targets))
            case ast.AnnAssign() if statement.value:
                yield from ((name, statement) for name in _names([statement.target]))


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """In their order; without recursion, as each `elif` lies one level deeper."""
    inner = (ast.stmt, ast.ExceptHandler, ast.match_case)
    waiting = [iter(body)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting.append(child for child in ast.iter_child_nodes(node) if isinstance(child, inner))


def _names(targets: list[ast.expr]) -> Iterator[str]:
    return (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
