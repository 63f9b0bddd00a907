"""What the text of a submission tells of a bug, read without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.definitions import parsed

__all__ = ["Clues", "clues_in"]


@dataclass(frozen=True)
class Clues:
    """What speaks for a bug."""

    returns_value: bool = False  # by the entry point
    branches_on_block: bool = False  # with an `if` in a Triton kernel


def clues_in(source: str, entry: str) -> Clues:
    """The clues in a cell whose entry point is the function `entry`; none where the text is no Python."""
    try:
        functions = [node for node in parsed(source).body if isinstance(node, ast.FunctionDef)]
        return Clues(
            any(_returns_value(each) for each in functions if each.name == entry),
            any(_branches_on_block(each) for each in functions if _is_kernel(each)),
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Clues()


def _returns_value(function: ast.FunctionDef) -> bool:
    """Whether it returns more than None; functions inside of it, and `return kernel[grid](…)`, do not count."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Return) and not (_is_none(node.value) or _is_launch(node.value)):
            return True
        waiting += ast.iter_child_nodes(node)
    return False


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _is_launch(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Subscript)


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)


def _branches_on_block(kernel: ast.FunctionDef) -> bool:
    """Whether an `if` compares what was computed from a `tl.arange`."""
    blocks: set[str] = set()
    for node in ast.walk(kernel):  # in the order of the lines, but for those nested deeper, which come later
        if isinstance(node, ast.Assign) and _holds_block(node.value, blocks):
            blocks |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return any(isinstance(node, ast.If) and _holds_block(node.test, blocks) for node in ast.walk(kernel))


def _holds_block(expression: ast.expr, blocks: set[str]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in blocks)
        or (isinstance(node, ast.Attribute) and node.attr == "arange")
        for node in ast.walk(expression)
    )
