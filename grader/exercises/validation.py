"""Faults of an exercise, found before anyone is graded by it: unknown names, baselines that need their module."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from grader.exercise import FILLS, Exercise

_GIVEN = {"Any", *dir(builtins)}  # `grader.exercise.text_of` imports Any


def faults(exercise: Exercise) -> list[str]:
    """One sentence per fault: the field, what is wrong with it, and the values that it can have."""
    timed = [case.name for case in exercise.timed_cases]
    names = [case.name for case in (*exercise.cases, *exercise.simulator_cases)]
    baselines = [baseline.id for baseline in exercise.baselines]
    every = (*exercise.cases, *exercise.simulator_cases, *exercise.timed_cases, *exercise.plot_cases)
    found = [_twice(field, getattr(exercise, field)) for field in ("cases", "simulator_cases", "timed_cases")]
    for case in every if exercise.draw is None else ():
        found += [_unknown(f"the fill of {case.name!r}", fill, FILLS) for fill in case.fill.split("|")]
    for gate in exercise.gates:
        found.append(_unknown("the baseline of a gate", gate.baseline, baselines))
        found += [_unknown(f"a case of the gate against {gate.baseline!r}", name, timed) for name in gate.cases]
    for number, suspect in enumerate(exercise.suspects, 1):
        found += [_unknown(f"`spares` of suspect {number}", name, names) for name in suspect.spares]
    functions = {f"the baseline {each.id!r}": each.function for each in exercise.baselines}
    functions |= {f"the harness of {each.id!r}": each.harness for each in exercise.baselines if each.harness}
    functions |= {f"the {each}": own for each in ("harness", "measure") if (own := getattr(exercise, each)) is not None}
    found += [_dependent(what, function) for what, function in functions.items()]
    return list(dict.fromkeys(each for each in found if each))


def _unknown(where: str, name: str, known: Iterable[str]) -> str:
    known = list(dict.fromkeys(known))
    if name in known:
        return ""
    close = get_close_matches(name, known, 1)
    meant = f"did you mean {close[0]!r}?" if close else f"it can be one of: {', '.join(map(repr, known)) or 'none'}."
    return f"{where} is {name!r}, which does not exist: {meant}"


def _twice(field: str, cases: Iterable[Any]) -> str:
    counted = Counter(case.name for case in cases)
    return next((f"`{field}` has the name {name!r} twice." for name, count in counted.items() if count > 1), "")


def _dependent(what: str, function: Callable[..., Any]) -> str:
    """A fault if the function's text uses a name of its module: a worker gets nothing but this text."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        tree = ast.Pass()
    if not isinstance(tree, ast.FunctionDef):
        return f"{what} must be a plain function, written with `def` in the module."
    nodes = list(ast.walk(tree))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    bound |= {node.name for node in nodes if isinstance(node, (ast.ExceptHandler, ast.MatchAs)) and node.name}
    imports = [alias for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names]
    bound |= {(alias.asname or alias.name).partition(".")[0] for alias in imports}
    free = [node.id for node in nodes if isinstance(node, ast.Name) and node.id not in bound | _GIVEN]
    if not free:
        return ""
    return f"{what} uses {free[0]!r} of its module: a worker gets the function's text alone, so define it inside."
