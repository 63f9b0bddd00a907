"""Submissions with the same text, or with the same program but for names, comments and the order of definitions.

For the instructor alone: short exercises have few different solutions, so a group is a reason to ask, not a proof.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import hashlib
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.classroom import course_folder as folder
from grader.classroom.answers import Result
from grader.submission import submissions_in

_KEPT = {*dir(builtins), "self"}
_FEWEST_NODES = 25  # a program this small is written alike by many
_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)  # to the end: a search for each `/*` takes hours
_C_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")
_C_KEPT = frozenset(
    re.findall(
        r"\S+",
        """
    __device__ __forceinline__ __global__ __launch_bounds__ __restrict__ __shared__ __syncthreads auto blockDim
    blockIdx bool break case char class const constexpr continue default do double else extern float for gridDim
    half if inline int long namespace return short signed sizeof static struct switch template threadIdx typename
    unsigned using void volatile while x y z
""",
    )
)


@dataclass(frozen=True)
class CopyGroup:
    """Students whose submissions of an exercise are alike. `same_text`: character by character."""

    exercise: str
    same_text: bool
    students: tuple[str, ...]


@dataclass(frozen=True)
class CopiesResult(Result):
    """The groups in an assignment."""

    assignment: str
    groups: tuple[CopyGroup, ...]

    def to_text(self) -> str:
        if not self.groups:
            return f"{self.assignment}: no two submissions are alike."
        lines = [f"{self.assignment}: these submissions are alike, which does not prove that one was copied."]
        for group in self.groups:
            how = "same text" if group.same_text else "same program but for names, comments and order"
            lines.append(f"  {group.exercise:<22} {how}: {', '.join(group.students)}")
        return "\n".join(lines)


def find_copies(course: Path, assignment: str) -> CopiesResult:
    """The groups of collected submissions that are alike. A student whose text is in a group counts once in each.

    Raises:
        ClassroomError: there is no such assignment.
    """
    api = folder.api(course)
    folder.refuse_unknown(api, assignment)
    stubs = _texts(folder.path(api, "release", assignment))
    by_text: dict[tuple[str, str], list[str]] = defaultdict(list)
    by_program: dict[tuple[str, str], list[str]] = defaultdict(list)
    for student in sorted(api.get_submitted_students(assignment)):
        for exercise, text in _texts(folder.path(api, "submitted", assignment, student)).items():
            program = program_fingerprint(text, stubs.get(exercise, ""))
            if program is not None:
                by_text[exercise, text.strip()].append(student)
                by_program[exercise, program].append(student)
    same = [CopyGroup(exercise, True, tuple(who)) for (exercise, _), who in by_text.items() if len(who) > 1]
    texts = {(group.exercise, group.students) for group in same}
    alike = [CopyGroup(exercise, False, tuple(who)) for (exercise, _), who in by_program.items() if len(who) > 1]
    alike = [group for group in alike if (group.exercise, group.students) not in texts]
    groups = sorted(same + alike, key=lambda group: (group.exercise, not group.same_text, group.students))
    return CopiesResult(assignment, tuple(groups))


def program_fingerprint(text: str, stub: str = "") -> str | None:
    """A hash of what a program does to the syntax tree's eye; None if it is the stub's, very short, or no Python.

    Names that it defines are numbered by first use in each top-level statement. Statements equal to one of the stub's
    are left out, and the order of the others does not count. Code of other languages in strings is treated alike.
    """
    own, given = _statements(text), _statements(stub)
    if own is None:
        return None
    left = [statement for statement in own if statement not in (given or [])]
    if sum(statement.count("(") for statement in left) < _FEWEST_NODES:
        return None
    return hashlib.sha256("\n".join(sorted(left)).encode("utf-8", "backslashreplace")).hexdigest()


def _statements(text: str) -> list[str] | None:
    """Each top-level statement as text without names, comments, docstrings and positions."""
    try:
        tree = ast.parse(text)
        imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        statements = [each for each in tree.body if not isinstance(each, ast.Import | ast.ImportFrom)]
        return [ast.dump(_WithoutNames(imported).visit(statement)) for statement in statements]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _WithoutNames(ast.NodeTransformer):
    """Numbers the names of one statement in the order of their first use."""

    def __init__(self, imported: set[str]) -> None:
        self._kept = _KEPT | imported
        self._numbers: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self._number(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self._number(node.arg), node.annotation and self.visit(node.annotation))

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return ast.keyword(node.arg and self._numbers.get(node.arg, node.arg), self.visit(node.value))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._number(node.name)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and "\n" in node.value:
            return ast.Constant(_without_c_names(node.value))
        return node

    def _number(self, name: str) -> str:
        return name if name in self._kept else self._numbers.setdefault(name, f"_{len(self._numbers)}")


def _without_c_names(text: str) -> str:
    """CUDA C++ or another language in a string: its tokens, with names numbered by first use."""
    numbers: dict[str, str] = {}
    tokens = _C_TOKEN.findall(_C_COMMENT.sub(" ", text))
    named = [
        numbers.setdefault(token, f"_{len(numbers)}")
        if (token[0].isalpha() or token[0] == "_") and token not in _C_KEPT
        else token
        for token in tokens
    ]
    return " ".join(named)


def _texts(notebooks: Path) -> dict[str, str]:
    found: dict[str, Any] = {}
    for notebook in sorted(notebooks.glob("*.ipynb")):
        with contextlib.suppress(Exception):  # `autograde` reports it
            found |= {each.exercise_id: each.source for each in submissions_in(notebook)}
    return found
