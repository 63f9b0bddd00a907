"""What must hold between the source notebooks and the exercises: ids, points, stubs that still define."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from grader.authoring import percent, stubs
from grader.authoring.errors import SourceError
from grader.exercise import Exercise

__all__ = ["CHECK_PREFIX", "exercise_faults", "repeated_ids"]

CHECK_PREFIX = "check-"

Sources = Mapping[str, Sequence[percent.Cell]]  # "03_triton/03_fuse_a_softmax.py" -> its cells


def repeated_ids(sources: Sources) -> list[str]:
    """A sentence for each grade_id that stands more than once, in one notebook or in several."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, cell in _graded(sources):
        places[str(cell.nbgrader.get("grade_id", ""))].append(f"source/{name}:{cell.line}")
    return [
        f"The id {grade_id!r} stands {len(where)} times: {', '.join(where)}."
        for grade_id, where in sorted(places.items())
        if len(where) > 1
    ]


def exercise_faults(sources: Sources, exercises: Mapping[str, Exercise], unreadable: Collection[str] = ()) -> list[str]:
    """A sentence for each cell that does not fit its exercise, and each exercise without its cells.

    Nothing is said of what `unreadable` sources may hold.
    """
    faults = []
    solved, checked = set(), set()
    for name, cell in _graded(sources):
        where = f"source/{name}:{cell.line}"
        grade_id = str(cell.nbgrader.get("grade_id", ""))
        if cell.nbgrader.get("solution"):
            if grade_id not in exercises:
                known = ", ".join(exercises)
                faults.append(f"{where}: the solution id {grade_id!r} is no exercise; there are: {known}.")
                continue
            solved.add(grade_id)
            faults += [f"{where}: {fault}." for fault in _solution_faults(name, cell, exercises[grade_id])]
        elif cell.nbgrader.get("grade"):
            exercise_id = grade_id.removeprefix(CHECK_PREFIX)
            if exercise_id == grade_id or exercise_id not in exercises:
                faults.append(f"{where}: a check cell's id is `{CHECK_PREFIX}` and an exercise's id, not {grade_id!r}.")
                continue
            checked.add(exercise_id)
            faults += [f"{where}: {fault}." for fault in _check_faults(cell, exercises[exercise_id])]
    for exercise in exercises.values():
        home = f"{exercise.chapter}/{exercise.notebook}.py"
        if home in unreadable:
            continue
        if exercise.id not in solved:
            faults.append(f"source/{home}: the exercise {exercise.id!r} has no solution cell.")
        if exercise.id not in checked:
            faults.append(
                f"source/{home}: the exercise {exercise.id!r} has no check cell ({CHECK_PREFIX}{exercise.id})."
            )
    return faults


def _graded(sources: Sources) -> list[tuple[str, percent.Cell]]:
    return [(name, cell) for name, cells in sources.items() for cell in cells if cell.nbgrader]


def _solution_faults(name: str, cell: percent.Cell, exercise: Exercise) -> list[str]:
    home = f"{exercise.chapter}/{exercise.notebook}.py"
    faults = [] if name == home else [f"the exercise {exercise.id!r} says that it stands in source/{home}"]
    try:
        versions = {"solution": stubs.without_markers(cell.text), "stub": stubs.without_solutions(cell.text)}
    except SourceError:
        return faults  # said already, as the notebook could not be made
    for version, text in versions.items():
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            faults.append(f"the {version} is not Python: line {error.lineno}, {error.msg}")
            continue
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == exercise.entry]
        signature = f"{exercise.entry}({', '.join(exercise.parameters)})"
        if not functions:
            faults.append(f"the {version} does not define `{signature}`")
        elif tuple(argument.arg for argument in functions[-1].args.args) != exercise.parameters:
            faults.append(f"the {version} defines `{exercise.entry}` with other parameters than `{signature}`")
    return faults


def _check_faults(cell: percent.Cell, exercise: Exercise) -> list[str]:
    faults = []
    points = cell.nbgrader.get("points")
    if points != exercise.max_points:
        given = "no" if points is None else points
        faults.append(f"the cell gives {given} points, the exercise {exercise.id!r} gives {exercise.max_points:g}")
    if not cell.nbgrader.get("locked"):
        faults.append("a check cell is locked")
    if cell.text.strip() != f"check({exercise.entry})":
        faults.append(f"a check cell holds `check({exercise.entry})` and nothing else")
    return faults
