"""The choice of the cell to judge: one rule for `check` in a notebook, `grader grade`, `grader check`, and a class."""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from grader.exercise import MAX_SOURCE_BYTES, Exercise

# A cell's text as Python reads it: the names that it binds when it runs, and the statements that bind them.

_LONGEST_CHAIN = 32  # dots in a name, as in `torch.nn.functional`
_TOKEN = re.compile(r"\w+|[^\w\s\\]")


def parsed(source: str) -> ast.Module:
    """The syntax tree of an untrusted text.

    For `import a.a.a…` Python's parser stores every prefix of the name: 64 kB of it took 5 GB. A name with too many
    dots is therefore refused before parsing.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not Python, or too much of it.
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
        warnings.simplefilter("ignore")  # Python warns about an invalid escape when the cell runs
        return ast.parse(source)


def bindings(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Names and statements at module level, including those in `if`, `try`, `with`, `match` and loops, in order."""
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
    """Statements in order, without recursion, because each `elif` is one level deeper."""
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


TURN_INTO_CODE = "select it, press Esc and then Y to turn it into a code cell"

_STUB = "not written yet"  # as in the NotImplementedError that the course's stubs raise
_STUB_IN_C = re.compile(r"\{\s*// YOUR CODE HERE\s*\}")
_CELL_MAGIC = re.compile(r"\s*%%")


@dataclass(frozen=True)
class Cell:
    """A cell, parsed once for all exercises. `name` is its name for a person: "cell 7" in a file, "In [7]" in a running
    notebook. `cell_type` is "code", "markdown" or "raw".
    """

    name: str
    source: str
    cell_type: str = "code"
    grade_id: str | None = None

    def defines(self, name: str) -> bool:
        """Whether running the text binds `name`. A text with a syntax error counts if it seems to."""
        if name not in self._normalized:
            return False
        if self._module is None:
            return _seems_to_define(self._normalized, name)
        return name in self._bound

    @property
    def is_python(self) -> bool:
        return self._module is not None

    @cached_property
    def is_stub(self) -> bool:
        """Whether the text still has a gap that the course left: a function that says "not written yet", a kernel that
        only passes, or an empty C++ function.
        """
        if self._module is None:
            return False
        return any(_is_open(node) for node in ast.walk(self._module))

    @property
    def has_cell_magic(self) -> bool:
        return _CELL_MAGIC.match(self.source) is not None

    @cached_property
    def _normalized(self) -> str:
        return unicodedata.normalize("NFKC", self.source)  # as Python reads identifiers

    @cached_property
    def _module(self) -> ast.Module | None:
        """None if it is not Python, or too much of it to parse here."""
        if len(self.source) > MAX_SOURCE_BYTES:
            return None
        try:
            return parsed(self.source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def _bound(self) -> frozenset[str]:
        return frozenset(bound for bound, _ in bindings(self._module)) if self._module is not None else frozenset()


def judged_cell(cells: Sequence[Cell], exercise: Exercise) -> Cell | None:
    """The cell to judge for an exercise, or None if no cell defines its function.

    The rule:

    1. The last code cell that defines the exercise's function counts, as when a notebook is run from top to bottom.
       The order is that of the file; in a running notebook it is the order in which the cells were run.
    2. A cell that is still the stub counts only if no other code cell defines the function. The same holds for a cell
       under a `%%` magic, which is not Python; it comes before the stub.
    3. If no code cell defines the function, the solution cell counts, which is found by its grade_id. It may have been
       turned into text, or have a syntax error in place of the function.
    """
    defining = [cell for cell in cells if cell.cell_type == "code" and cell.defines(exercise.entry)]
    for counts in (_is_solution, lambda cell: not cell.is_stub, lambda cell: True):
        if found := [cell for cell in defining if counts(cell)]:
            return found[-1]
    as_text, marked = text_cells(cells, exercise), [cell for cell in cells if cell.grade_id == exercise.id]
    meant = [cell for cell in marked if cell in as_text or (cell.cell_type == "code" and not cell.is_python)]
    return meant[-1] if meant else None


def text_cells(cells: Sequence[Cell], exercise: Exercise) -> list[Cell]:
    """The Markdown and raw cells whose text is Python that defines the exercise's function."""
    return [cell for cell in cells if cell.cell_type != "code" and cell.defines(exercise.entry) and cell.is_python]


def note_on(judged: Cell, cells: Sequence[Cell], exercise: Exercise) -> str:
    """One or two sentences for the report on the choice in a file; empty if there was no choice."""
    if judged.cell_type != "code":
        return f"Judged: {judged.name}, which is {_type_of(judged)}: {TURN_INTO_CODE}."
    defining = [cell for cell in cells if cell.cell_type == "code" and cell.defines(exercise.entry)]
    solutions = [cell for cell in defining if _is_solution(cell)]
    stubs = [cell for cell in defining if cell.is_stub and cell is not judged]
    marked = [cell for cell in cells if cell.grade_id == exercise.id]
    said = ""
    if len(solutions) > 1:
        said += f", the last of the cells that define `{exercise.entry}` ({', '.join(cell.name for cell in solutions)})"
    if stubs and not judged.is_stub:
        said += f", as {_called(stubs[-1], marked)} is still the stub"
    elif marked and not any(cell in defining for cell in marked):
        said += f", as {_called(marked[-1], marked)} does not define `{exercise.entry}`"
    sentences = [f"Judged: {judged.name}{said}."] if said and judged in defining else []
    if judged.is_stub and (text := text_cells(cells, exercise)):
        sentences.append(f"Not judged: {text[-1].name}, which is {_type_of(text[-1])}: {TURN_INTO_CODE}.")
    return " ".join(sentences)


def _called(cell: Cell, marked: Sequence[Cell]) -> str:
    return f"the marked cell ({cell.name})" if cell in marked else cell.name


def _type_of(cell: Cell) -> str:
    return "a Markdown cell" if cell.cell_type == "markdown" else f"a {cell.cell_type} cell"


def _is_solution(cell: Cell) -> bool:
    return not (cell.is_stub or cell.has_cell_magic)


def _is_open(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(body=body, decorator_list=decorators):
            return _says_not_written(body) or (_only_passes(body) and any(map(is_jit, decorators)))
        case ast.Constant(value=str(text)):
            return _STUB_IN_C.search(text) is not None
    return False


def _says_not_written(body: list[ast.stmt]) -> bool:
    """Whether running the statements raises the stub's error, unless a branch returns first."""
    for statement in body:
        match statement:
            case ast.Raise(exc=ast.Call(func=ast.Name(id="NotImplementedError"), args=[ast.Constant(value=str(said))])):
                return _STUB in said
            case ast.Raise() | ast.Return():
                return False
    return False


def _only_passes(body: list[ast.stmt]) -> bool:
    rest = body[1:] if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else body
    return bool(rest) and all(isinstance(statement, ast.Pass) for statement in rest)


def is_jit(decorator: ast.expr) -> bool:
    """Whether a decorator makes a kernel, as `triton.jit` and `cuda.jit(…)` do."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(target, "attr", getattr(target, "id", "")) == "jit"


def _seems_to_define(source: str, name: str) -> bool:
    """A guess, so that the report names a syntax error instead of a missing function."""
    return re.search(rf"^(?:async\s+)?(?:def|class)\s+{name}\b|^{name}\s*=", source, re.MULTILINE) is not None
