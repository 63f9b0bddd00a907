"""What can be said of a submission before anything runs: is there a function of this name and signature?"""

from __future__ import annotations

import ast

from grader.exercise import Exercise
from grader.verdict import Failure

__all__ = ["MAX_SOURCE_BYTES", "refuse"]

MAX_SOURCE_BYTES = 1 << 20


def refuse(source: str, exercise: Exercise) -> Failure | None:
    """The reason for which the source cannot be graded, or None."""
    if not source.strip():
        return _unusable("The submission is empty.")
    if len(source.encode("utf-8", "replace")) > MAX_SOURCE_BYTES:
        return _unusable(f"The submission is larger than {MAX_SOURCE_BYTES >> 20} MB; a solution is one cell of text.")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return _unusable(f"Syntax error in line {error.lineno}: {error.msg}.", error.lineno)
    except (ValueError, RecursionError, MemoryError) as error:
        return _unusable(f"Python cannot read the submission: {error}.")
    defined = _definition(tree, exercise.entry)
    wanted = f"{exercise.entry}({', '.join(exercise.parameters)})"
    if defined is None:
        return _unusable(f"The cell does not define {exercise.entry!r}; it must define {wanted} at its top level.")
    if isinstance(defined, ast.FunctionDef) and not _accepts(defined.args, len(exercise.parameters)):
        theirs = f"{exercise.entry}({ast.unparse(defined.args)})"
        return _unusable(f"The signature is {theirs}; the grader calls {wanted}.", defined.lineno)
    return None


def _unusable(message: str, line: int | None = None) -> Failure:
    return Failure("unusable", message, line)


def _definition(tree: ast.Module, name: str) -> ast.stmt | None:
    """The last statement that may bind the name: a definition, an assignment or an import."""
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            if node.name == name and node in tree.body:
                found = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)}
            if name in names:
                found = node
        elif isinstance(node, ast.Import | ast.ImportFrom) and any(
            (alias.asname or alias.name) in (name, "*") for alias in node.names
        ):
            found = node
    return found


def _accepts(arguments: ast.arguments, count: int) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    keyword_only = sum(default is None for default in arguments.kw_defaults)
    return required <= count <= (count if arguments.vararg else positional) and not keyword_only
