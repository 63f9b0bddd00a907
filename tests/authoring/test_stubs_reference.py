"""The reference solutions as text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from grader.authoring import stubs
from grader.authoring.source_tree import SourceError
from grader.errors import MachineLacks, UnknownExercise
from grader.exercises import EXERCISES

from .conftest import SOFTMAX_BUILT, SOFTMAX_PATH, Checkout


def test_the_solution_is_the_cell_without_markers(tree: Checkout) -> None:
    """`solution` has the lines of the solution, and no marker."""
    text = stubs.solution("softmax", root=tree.root)
    assert text.startswith("import triton\n")
    assert "    denominator = tl.sum(numerator, axis=0)  # reads nothing\n" in text
    assert "SOLUTION" not in text


def test_unsolved_is_what_the_course_holds(tree: Checkout) -> None:
    """`unsolved`, read without Jupyter, equals the cell that nbgrader's preprocessors left in the course."""
    tree.build()
    notebook = nbformat.read(tree.root / SOFTMAX_BUILT, as_version=4)
    cell = next(cell for cell in notebook.cells if cell.id == "softmax")
    assert stubs.unsolved("softmax", root=tree.root) == cell.source


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_every_exercise_has_its_solution(exercise_id: str) -> None:
    """Each exercise's solution and stub are Python that differ."""
    solved, unsolved = stubs.solution(exercise_id), stubs.unsolved(exercise_id)
    compile(solved, exercise_id, "exec")
    compile(unsolved, exercise_id, "exec")
    assert "YOUR CODE HERE" in unsolved or "not written yet" in unsolved
    assert "YOUR CODE HERE" not in solved
    assert solved != unsolved


def test_the_missing_part_is_named(tree: Checkout, tmp_path: Path) -> None:
    """A missing exercise, checkout, notebook or cell each has its own sentence."""
    with pytest.raises(UnknownExercise, match="softmaxx"):
        stubs.solution("softmaxx", root=tree.root)
    with pytest.raises(MachineLacks, match="checkout"):
        stubs.solution("softmax", root=tmp_path / "installed")
    tree.replace(SOFTMAX_PATH, '"softmax"', '"soft"')
    with pytest.raises(SourceError, match="no solution cell"):
        stubs.solution("softmax", root=tree.root)
    (tree.root / SOFTMAX_PATH).unlink()
    with pytest.raises(SourceError, match="is missing"):
        stubs.unsolved("softmax", root=tree.root)


def test_it_needs_no_jupyter() -> None:
    """A machine without Jupyter, nbgrader, jupytext and torch can read the solutions."""
    code = """
import sys
for name in ("jupytext", "nbgrader", "nbformat", "nbconvert", "jinja2", "torch", "markdown_it", "sqlalchemy"):
    sys.modules[name] = None
from grader.authoring import stubs
print(len(stubs.solution("softmax")) > len(stubs.unsolved("softmax")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2], check=True
    )
    assert done.stdout.strip() == "True"
