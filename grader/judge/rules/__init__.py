"""Checks whether a submission keeps an exercise's rules: write the kernel yourself, leave the library alone.

The findings are advice for a person and take no points, because a source can be written to evade them. Doubtful cases
are not reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from grader.exercise import Exercise
from grader.judge.rules.compiled import missing, of_kernels, without_comments
from grader.judge.rules.flow import follow
from grader.judge.rules.names import Names
from grader.judge.rules.notes import Note, findings, says_no_kernel, shown
from grader.judge.rules.reach import beyond, inside
from grader.submission.solution_cell import parsed
from grader.verdict import Failure, Finding

__all__ = ["of_kernels", "of_source", "without_doubtful"]


def of_source(source: str, exercise: Exercise) -> tuple[Finding, ...]:
    """Findings about a submission's text, in line order; none if it does not parse, which the judge reports itself."""
    try:
        module = parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    try:
        names = Names(module)
        notes = [*beyond(names), *(inside(names) if exercise.rules.handed else ())]
        if exercise.backend == "torch":  # no kernel is required: only forbidden calls matter
            notes += [note for note in follow(names, exercise) if note.rule in ("library", "fallback")]
        else:
            notes += [*missing(names, exercise), *follow(names, exercise), *_cpp(names, exercise)]
    except Exception:  # hostile text must not stop the grading
        notes = [Note("unread")]
    return findings(notes, exercise)


def without_doubtful(found: Iterable[Finding], failures: Iterable[Failure | None]) -> tuple[Finding, ...]:
    """The findings, without "no kernel" if a name is undefined: the kernel may be in another cell."""
    if not any(each is not None and each.message.startswith("NameError: ") for each in failures):
        return tuple(found)
    return tuple(each for each in found if not says_no_kernel(each))


def _cpp(names: Names, exercise: Exercise) -> Iterator[Note]:
    """Library calls in C++ code inside string literals."""
    forbidden = "|".join(map(re.escape, exercise.rules.library))
    if not forbidden:
        return
    call = re.compile(rf"\b(?:at|torch)\s*::\s*(?:{forbidden})(?:_out|_)?(?=\s*\()")
    for node in ast.walk(names.module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "{" in node.value:
            code = without_comments(node.value)
            spans_lines = (node.end_lineno or node.lineno) - node.lineno == node.value.count("\n")  # no `\\n` in it
            for found in call.finditer(code):
                offset = code.count("\n", 0, found.start()) if spans_lines else 0
                yield Note("library", node.lineno + offset, shown(found[0]))
