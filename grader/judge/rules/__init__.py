"""The rules of an exercise, as notes for a person: write the kernel yourself, and let the library be.

Advice, never points: a source can be written so that none of this sees it. What is doubtful is not noted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from grader.exercise import Exercise
from grader.judge.rules.compiled import missing, of_kernels, without_comments
from grader.judge.rules.flow import follow
from grader.judge.rules.handed import taken_apart
from grader.judge.rules.names import Names
from grader.judge.rules.notes import Note, findings, says_no_kernel, shown
from grader.judge.rules.reach import beyond
from grader.submission.solution_cell import parsed
from grader.verdict import Failure, Finding

__all__ = ["of_kernels", "of_source", "without_doubtful"]


def of_source(source: str, exercise: Exercise) -> tuple[Finding, ...]:
    """What a person should know of a submission's text, in the order of its lines.

    A source that is no Python has none: the judge says so itself.
    """
    try:
        module = parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    try:
        names = Names(module)
        notes = [*beyond(names), *taken_apart(names, exercise)]
        if exercise.backend == "torch":  # it asks for no kernel: there, what is forbidden is all that matters
            notes += [note for note in follow(names, exercise) if note.rule in ("library", "fallback")]
        else:
            notes += [*missing(names, exercise), *follow(names, exercise), *_cpp(names, exercise)]
    except Exception:  # hostile text: whatever it does to the reading, grading goes on, and a person is told
        notes = [Note("unread")]
    return findings(notes, exercise)


def without_doubtful(found: Iterable[Finding], failures: Iterable[Failure | None]) -> tuple[Finding, ...]:
    """The findings, less that no kernel is written where a name that another cell defines is missing: it may be one."""
    if not any(each is not None and each.message.startswith("NameError: ") for each in failures):
        return tuple(found)
    return tuple(each for each in found if not says_no_kernel(each))


def _cpp(names: Names, exercise: Exercise) -> Iterator[Note]:
    """What the C++ in a submission's texts calls."""
    forbidden = "|".join(map(re.escape, exercise.rules.library))
    if not forbidden:
        return
    call = re.compile(rf"\b(?:at|torch)\s*::\s*(?:{forbidden})(?:_out|_)?(?=\s*\()")
    for node in ast.walk(names.module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "{" in node.value:
            code = without_comments(node.value)
            for found in call.finditer(code):
                in_text = code.count("\n", 0, found.start()) if _over_lines(node, node.value) else 0
                yield Note("library", node.lineno + in_text, shown(found[0]))


def _over_lines(node: ast.Constant, value: str) -> bool:
    """Whether a text's lines are lines of the source, and not written as `\\n`."""
    return (node.end_lineno or node.lineno) - node.lineno == value.count("\n")
