"""`grader exercise new`: copies an exercise into a course folder under a new id.

The copy works at once: its reference solution is right, and its test passes. It consists of the module (with id, title,
place and function renamed), the solution cell with its reference, and a test.
"""

from __future__ import annotations

import ast
import io
import json
import keyword
import re
import tokenize
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader.authoring import source_tree, stubs
from grader.authoring.source_tree import SourceError, checkout
from grader.errors import GraderError
from grader.exercise import Exercise
from grader.exercises import EXERCISES, PACKAGED, find, found

# The two cells of an exercise in its notebook: the solution cell with the reference, and the check cell's points.


@dataclass(frozen=True)
class ExerciseCells:
    """`text` is the solution cell as its author wrote it, with the markers around the solutions.

    `points` are those of the check cell, None if the notebook has no check cell.
    """

    text: str
    points: float | None

    @property
    def reference(self) -> str:
        """The solved cell."""
        return stubs.without_markers(self.text)

    @property
    def stub(self) -> str:
        """The cell as learners get it."""
        return stubs.without_solutions(self.text)


def exercise_cells(exercise: Exercise) -> ExerciseCells:
    """The cells of an exercise, from `source/` of the checkout, or of the course folder if the exercise is its own.

    Raises:
        MachineLacks: this is not a source checkout.
        SourceError: there is no such notebook, or no such cell in it.
    """
    name = f"source/{exercise.chapter}/{exercise.notebook}"
    course = found.course()
    if exercise.id in PACKAGED or course is None:
        path = checkout(None).root / f"{name}.py"
        cells = [(cell.text, cell.nbgrader) for cell in source_tree.read(_read(path), path.name)]
    else:
        path = course / f"{name}.ipynb"
        cells = [("".join(cell["source"]), _nbgrader(cell)) for cell in json.loads(_read(path))["cells"]]
    by_id = {data.get("grade_id"): (text, data) for text, data in cells}
    if exercise.id not in by_id:
        raise SourceError(f"{path} has no solution cell with the grade_id {exercise.id!r}.")
    return ExerciseCells(by_id[exercise.id][0], by_id.get(f"check-{exercise.id}", ("", {}))[1].get("points"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SourceError(f"{path} is missing: it should hold the exercise's solution cell.") from None


def _nbgrader(cell: dict[str, Any]) -> dict[str, Any]:
    data = cell["metadata"].get("nbgrader", {})
    return data if isinstance(data, dict) else {}


_ID = re.compile(r"[a-z][a-z0-9_]*")

_NOTEBOOK = """\
# %% [markdown]
# # {title}
#
# Say what learners will write and learn here.

# %%
from grader import check

# %% [markdown]
# ## Exercise
#
# Say what `{entry}({parameters})` has to do: shapes, types, strides, and which values can occur.

# %% nbgrader={{"grade_id": "{id}", "solution": true}}
{cell}

# %% nbgrader={{"grade_id": "check-{id}", "grade": true, "locked": true, "points": {points:g}}}
check({entry})
"""

_TEST = '''\
"""The exercise `{id}`: its reference is right, mistakes are not, and the stub counts as not written."""

from pathlib import Path

import pytest

from grader.authoring.new_exercise import exercise_cells
from grader.exercises import find, found
from grader.judge.service import Judge

found.use(Path(__file__).resolve().parents[1])  # the course folder
EXERCISE = find("{id}")
CELLS = exercise_cells(EXERCISE)

# One entry per mistake: the cell of a learner who makes it, and words of the suspect that names it. Add the mistakes
# that you expect, such as (CELLS.reference.replace("right", "wrong"), "the suspect's words").
MISTAKES = {{
    "every element is off": (
        CELLS.reference
        + """

_right = {entry}


def {entry}({parameters}):
    _right({parameters})
    {out}.copy_({out} * 1.01 + 1)
""",
        "",  # no suspect
    ),
}}


@pytest.fixture(scope="module")
def judge():
    with Judge("auto") as judge:
        yield judge


def test_the_reference_earns_all_points_for_correctness(judge):
    """Every case is right."""
    verdict = judge.grade(CELLS.reference, EXERCISE.id, timed=False)
    assert verdict.points == EXERCISE.correctness_points, verdict


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_earns_no_points_and_is_named(judge, name):
    """A case has a wrong output; a cell that fails to run would not count."""
    cell, words = MISTAKES[name]
    assert cell != CELLS.reference
    verdict = judge.grade(cell, EXERCISE.id, timed=False)
    assert verdict.points == 0
    assert any(case.mismatch and words in case.mismatch.suspect for case in verdict.cases), verdict


def test_the_stub_counts_as_not_written(judge):
    """The cell that learners get says "not written yet"."""
    verdict = judge.grade(CELLS.stub, EXERCISE.id, timed=False)
    kinds = [each.kind for each in (verdict.failure, *(case.failure for case in verdict.cases)) if each]
    assert kinds[:1] == ["not_written"], verdict


def test_the_check_cell_has_the_points_of_the_exercise():
    """Formgrader shows the points that a report shows."""
    assert CELLS.points == EXERCISE.max_points
'''


@dataclass(frozen=True)
class NewExercise:
    """The files that were written; paths are in `course`."""

    id: str
    like: str
    course: str
    module: str
    notebook: str
    test: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def to_text(self) -> str:
        """A few lines for a terminal."""
        wide = max(len(path) for path in (self.module, self.notebook, self.test))
        return "\n".join(
            [
                f"Wrote these files in {self.course}, for now a copy of {self.like}:",
                f"  {self.module:{wide}}  cases, oracle, budget, baselines, gates, suspects, hints",
                f"  {self.notebook:{wide}}  the solution cell with its reference, the check cell",
                f"  {self.test:{wide}}  a right solution, a mistake, the stub",
                "Next: change these files, then run",
                f"  grader check {self.notebook}",
                f"  grader exercise budget {self.id}",
                f"  python -m pytest {self.test}",
                f"  grader classroom release . {Path(self.notebook).parent.name}",
            ]
        )


def can_be_copied(exercise: Exercise) -> bool:
    """Whether the exercise has its own module, and its function writes its outputs into its arguments."""
    if any(array.name not in exercise.parameters for case in exercise.cases for array in case.outputs):
        return False
    path = Path(found.file_of(exercise))
    if sum(found.file_of(each) == str(path) for each in EXERCISES.values()) > 1:
        return False
    return path.is_file() and _definition(ast.parse(path.read_text(encoding="utf-8")), exercise.id) is not None


def new_exercise(
    exercise_id: str, like: str, *, course: Path | None = None, title: str = "", chapter: str = ""
) -> NewExercise:
    """Write the module, notebook and test of a new exercise into a course folder.

    Args:
        exercise_id: the new id, which is also the function's name: lower-case letters, digits and `_`.
        like: the exercise to copy.
        course: the course folder, by default the one around the current folder.
        title: by default made from the id.
        chapter: the assignment that gets the notebook, by default that of `like`.

    Raises:
        UnknownExercise: there is no exercise `like`.
        GraderError: no course folder, the id is taken or not a name, `like` cannot be copied, or a file exists.
    """
    if course is not None:
        found.use(course)
    root = found.course()
    if root is None or (course is not None and root != course.expanduser().absolute()):
        where = course if course is not None else Path.cwd()
        raise GraderError(f"{where} is not a course folder: make one with `grader classroom init DIR`.")
    model = find(like)
    if not can_be_copied(model):
        known = ", ".join(each.id for each in EXERCISES.values() if can_be_copied(each))
        raise GraderError(
            f"{like!r} cannot be copied: it shares its module, or is not a function of arrays. Copy one of: {known}."
        )
    cells = exercise_cells(model)
    _refuse_id(exercise_id, model, cells.text)
    title, chapter = title or exercise_id.replace("_", " ").capitalize(), chapter or model.chapter
    names = {
        root / found.FOLDER / f"{exercise_id}.py": _module(model, exercise_id, title, chapter),
        root / "source" / chapter / f"{exercise_id}.ipynb": _notebook(model, exercise_id, title, cells.text),
        root / "tests" / f"test_{exercise_id}.py": _test(model, exercise_id),
    }
    for path in names:
        if path.exists():
            raise GraderError(f"{path} exists already: choose another id, or move the file away.")
    for path, content in names.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    find(exercise_id)
    module, notebook, test = (path.relative_to(root).as_posix() for path in names)
    return NewExercise(exercise_id, like, str(root), module, notebook, test)


def _refuse_id(exercise_id: str, model: Exercise, cell: str) -> None:
    if not _ID.fullmatch(exercise_id) or keyword.iskeyword(exercise_id):
        raise GraderError(
            f"{exercise_id!r} cannot be an id: use lower-case letters, digits and `_`, and begin with a letter."
        )
    for each in EXERCISES.values():
        if exercise_id in (each.id, each.entry):
            raise GraderError(f"{exercise_id!r} is taken by the exercise in {found.file_of(each)}: choose another id.")
    texts = cell, Path(found.file_of(model)).read_text(encoding="utf-8")
    if any({exercise_id, exercise_id.upper()} & {token.string for token in _tokens(text)} for text in texts):
        raise GraderError(f"{exercise_id!r} is a name that {model.id!r} uses for something else: choose another id.")


def _module(model: Exercise, exercise_id: str, title: str, chapter: str) -> bytes:
    """The model's module with a new id, title, place, function and name in the definition."""
    text = Path(found.file_of(model)).read_text(encoding="utf-8")
    tree = ast.parse(text)
    definition = _definition(tree, model.id)
    assert definition is not None
    name, call = definition
    values = {"id": exercise_id, "title": title, "chapter": chapter, "notebook": exercise_id, "entry": exercise_id}
    edits = [
        (each.value, json.dumps(values[each.arg], ensure_ascii=False)) for each in call.keywords if each.arg in values
    ]
    first = tree.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        edits.append((first.value, f'"""{title}. Modelled on `{model.id}`."""'))
    lines = text.split("\n")
    for node, new in sorted(edits, key=lambda edit: (edit[0].lineno, edit[0].col_offset), reverse=True):
        last = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :].decode()
        start = lines[node.lineno - 1].encode()[: node.col_offset].decode()
        lines[node.lineno - 1 : node.end_lineno] = [start + new + last]
    return re.sub(rf"\b{name}\b", exercise_id.upper(), "\n".join(lines)).encode()


def _definition(tree: ast.Module, exercise_id: str) -> tuple[str, ast.Call] | None:
    """The name and the call in `NAME = Exercise(id="…", …)`, if the module has it in full."""
    for node in tree.body:
        if not (
            isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name)
        ):
            continue
        given = {each.arg: each.value for each in node.value.keywords}
        constant = given.get("id")
        whole = ast.unparse(node.value.func) == "Exercise" and {"title", "chapter", "notebook", "entry"} <= set(given)
        if whole and isinstance(constant, ast.Constant) and constant.value == exercise_id:
            return node.targets[0].id, node.value
    return None


def _notebook(model: Exercise, exercise_id: str, title: str, cell: str) -> bytes:
    from grader.authoring import notebooks

    text = _NOTEBOOK.format(
        title=title, id=exercise_id, entry=exercise_id, parameters=", ".join(model.parameters),
        cell=_renamed(cell, model.entry, exercise_id), points=model.max_points,
    )  # fmt: skip
    return notebooks.as_bytes(notebooks.instructor(text, f"{exercise_id}.ipynb", lambda markdown: markdown))


def _test(model: Exercise, exercise_id: str) -> bytes:
    (out, *_) = (array.name for array in model.cases[0].outputs)
    text = _TEST.format(id=exercise_id, entry=exercise_id, parameters=", ".join(model.parameters), out=out)
    return text.encode()


def _renamed(cell: str, old: str, new: str) -> str:
    """The cell with the function `old`, and the kernels that are named after it, renamed to `new`. Attributes and the
    text of strings, such as CUDA C++, do not change."""
    lines = cell.split("\n")
    tokens = _tokens(cell)
    for before, token in reversed(list(zip([None, *tokens], tokens, strict=False))):
        rest = token.string.removeprefix(old)
        if token.type != tokenize.NAME or (before is not None and before.string == "."):
            continue
        if token.string.startswith(old) and (not rest or rest.startswith("_")):
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:column] + new + rest + line[token.end[1] :]
    return "\n".join(lines)


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    """The names of a Python text, and the dots between them."""
    found_tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [each for each in found_tokens if each.type == tokenize.NAME or each.string == "."]
