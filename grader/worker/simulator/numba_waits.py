"""Turn a Numba kernel that waits for other threads into a generator, which yields where it waits.

A call such as `cuda.syncthreads()` in line 7 becomes `(yield ("syncthreads", 7))`, and a call of a device function that
waits becomes `(yield from …)`. Python switches generators much faster than threads.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

_INNER = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Untranslatable(Exception):
    """The function waits in a place where it cannot yield, or its source is not known."""


def waiting(function: Any, names: set[str]) -> Callable[..., Any] | None:
    """Return the function as a generator that yields `(name, line, *arguments)`; None if it calls none of the `names`.

    Raises Untranslatable.
    """
    return _waiting(function, frozenset(names))


@functools.cache
def _waiting(function: Any, names: frozenset[str]) -> Callable[..., Any] | None:
    try:
        lines, first = inspect.getsourcelines(function)
        (definition,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, TypeError, ValueError, SyntaxError) as error:
        raise Untranslatable from error
    if not isinstance(definition, ast.FunctionDef):
        raise Untranslatable
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    change = _Yielding(function, names, first)
    definition.body = [change.visit(statement) for statement in definition.body]
    if not change.waits:
        return None
    if change.inside:
        raise Untranslatable
    definition.decorator_list = []
    outer = ast.parse(f"def outer({', '.join(cells)}): return {definition.name}").body[0]
    outer.body.insert(0, definition)  # type: ignore[attr-defined]
    module = ast.increment_lineno(ast.fix_missing_locations(ast.Module([outer], [])), first - 1)
    space: dict[str, Any] = {}
    exec(compile(module, function.__code__.co_filename, "exec"), function.__globals__, space)
    code = space["outer"](*cells).__code__
    closure = tuple(cells[name] for name in code.co_freevars)
    return FunctionType(code, function.__globals__, definition.name, function.__defaults__, closure)


def _variable(function: Any, name: str) -> Any:
    """Return the value of a variable outside of the function, or None."""
    if name not in function.__code__.co_freevars:
        return function.__globals__.get(name)
    cell = function.__closure__[function.__code__.co_freevars.index(name)]
    return cell.cell_contents if cell != CellType() else None


class _Yielding(ast.NodeTransformer):
    """Replace calls that wait. `inside` says whether one is in a function or comprehension within the function."""

    def __init__(self, function: Any, names: frozenset[str], first: int) -> None:
        self.function, self.names, self.first = function, names, first
        self.waits = self.inside = False
        self._depth = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        inner = isinstance(node, _INNER)
        self._depth += inner
        super().generic_visit(node)
        self._depth -= inner
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in self.names:
            self._wait()
            what = [ast.Constant(called.attr), ast.Constant(self.first + node.lineno - 1), *given]
            return ast.copy_location(ast.Yield(ast.Tuple(what, ast.Load())), node)
        device = _variable(self.function, called.id) if isinstance(called, ast.Name) else None
        if getattr(device, "_device", False) and (made := _waiting(device.fn, self.names)) is not None:  # type: ignore[union-attr]
            self._wait()
            name = f"_waiting_{called.id}_{id(made)}"  # type: ignore[attr-defined]
            self.function.__globals__[name] = made
            node.func = ast.copy_location(ast.Name(name, ast.Load()), called)
            return ast.copy_location(ast.YieldFrom(node), node)
        return node

    def _wait(self) -> None:
        self.waits = True
        self.inside |= self._depth > 0
