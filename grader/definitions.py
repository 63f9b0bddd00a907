"""A cell's text as Python reads it: which names it gives a value when it runs, and by which statement."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator

__all__ = ["bindings", "parsed"]

_LONGEST_CHAIN = 32  # dots of a name, as in `torch.nn.functional`
_TOKEN = re.compile(r"\w+|[^\w\s\\]")


def parsed(source: str) -> ast.Module:
    """The syntax tree of a stranger's text.

    Of `import a.a.a…` Python's parser writes every beginning of the name down: 64 kB of it took 5 GB. So a name with so
    many dots is refused before.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is no Python, or too much of it.
    """
    dots, before = 0, ""
    for found in _TOKEN.finditer(source):
        token = found[0]
        if token == ".":
            dots = dots + 1 if before.isidentifier() else 0
        elif not (before == "." and dots):
            dots = 0
        if dots > _LONGEST_CHAIN:
            raise ValueError(f"a name has more than {_LONGEST_CHAIN} dots")
        before = token
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a learner's invalid escape Python warns when it runs
        return ast.parse(source)


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
