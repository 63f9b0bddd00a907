"""Every notebook runs from top to bottom: as a learner gets it, and solved.

If GRADER_NOTEBOOKS names a folder, the notebooks with outputs are kept there for reading.
"""

from __future__ import annotations

import copy
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.authoring.stubs import solution
from grader.exercises import EXERCISES
from tests.pace import PACE

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted(
    path.relative_to(ROOT / "source").with_suffix(".ipynb").as_posix() for path in (ROOT / "source").rglob("*.py")
)
LESSONS = [path for path in PATHS if "/" in path]
LIMIT_S = int(300 * PACE)


def _run(notebook: Any, folder: Path, solved: Any = None) -> list[Any]:
    """Run copies of the notebook in `folder` and return them with outputs; a cell that raises does not end the run.

    `solved`: the notebook to continue with in the same kernel, from the first cell that differs.
    """
    from nbclient import NotebookClient

    folder.mkdir(parents=True, exist_ok=True)
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    given = [copy.deepcopy(each) for each in (notebook, solved) if each is not None]
    client = NotebookClient(given[0], timeout=LIMIT_S, allow_errors=True, resources={"metadata": {"path": str(folder)}})
    with client.setup_kernel(env=os.environ | {"PYTHONPATH": python_path}):
        first = 0
        for each in given:
            client.nb = each
            for at in range(first, len(each.cells)):
                client.execute_cell(each.cells[at], at)
            pairs = zip(notebook.cells, given[-1].cells, strict=True)
            first = next((at for at, (one, other) in enumerate(pairs) if one.source != other.source), 0)
    if kept := os.environ.get("GRADER_NOTEBOOKS"):
        for number, each in enumerate(given):
            _keep(each, Path(kept), "-solved" * number)
    return given


def _keep(ran: Any, folder: Path, end: str) -> None:
    """Write the notebook to `folder` under the name of the current test."""
    import nbformat

    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", os.environ["PYTEST_CURRENT_TEST"].partition("::")[2].partition(" (")[0])
    nbformat.write(ran, folder / f"{name.strip('-')}{end}.ipynb")


def _outputs(notebook: Any) -> list[tuple[str, Any]]:
    return [(cell.id, output) for cell in notebook.cells for output in cell.get("outputs", [])]


def _text(output: Any) -> str:
    data = output.get("data", {})
    return str(output.get("text") or data.get("text/plain") or "")


def _points(notebook: Any, exercise_id: str) -> tuple[float, float]:
    """Return the points and the maximum from the report of the check cell."""
    (cell,) = (cell for cell in notebook.cells if cell.id == f"check-{exercise_id}")
    report = " ".join(_text(output) for output in cell.outputs)
    found = re.search(r"([\d.]+) of ([\d.]+) points", report)
    assert found, report
    return float(found[1]), float(found[2])


def _lesson(path: str) -> list[str]:
    return [e.id for e in EXERCISES.values() if f"{e.chapter}/{e.notebook}.ipynb" == path]


class _Images(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.without_words: list[str] = []
        self.count = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "img" or (tag == "svg" and "aria-hidden" not in given):
            self.count += 1
            if not (given.get("alt") or given.get("aria-label")):
                self.without_words.append(str(self.get_starttag_text()))


def _must_read_well(notebook: Any) -> int:
    """Check for errors, tracebacks, stderr and images without alt text; return the number of images."""
    images = _Images()
    for cell_id, output in _outputs(notebook):
        assert output.output_type != "error", (cell_id, output.get("evalue"))
        assert output.get("name") != "stderr", (cell_id, _text(output))
        assert "Traceback" not in _text(output), cell_id
        images.feed(str(output.get("data", {}).get("text/html", "")))
        assert not set(output.get("data", {})) & {"image/png", "image/jpeg"}, f"{cell_id}: a picture without alt text"
    assert images.without_words == []
    return images.count


def _solved(path: Path, checkout: Path) -> Any:
    """A course notebook with the reference solution in each solution cell."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = solution(cell.metadata["nbgrader"]["grade_id"], root=checkout)
    return notebook


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("path", PATHS)
def test_it_runs_as_it_is_and_then_solved(checkout: Path, course: dict[str, Any], path: str, tmp_path: Path) -> None:
    """A learner who runs all cells sees in each check what is missing, and earns nothing. With the reference solutions,
    in the same kernel, the checks give all points with a GPU, and the points for correctness without one.
    """
    exercises = _lesson(path)
    solved = _solved(checkout / "course" / path, checkout) if exercises else None
    ran, *rest = _run(course[path], tmp_path / Path(path).parent, solved)
    pictures = _must_read_well(ran)
    if path in LESSONS:
        assert pictures >= 1
    for exercise_id in exercises:
        assert _points(ran, exercise_id) == (0, EXERCISES[exercise_id].max_points)
        reports = " ".join(_text(output) for cell_id, output in _outputs(ran) if cell_id == f"check-{exercise_id}")
        assert "Not written yet" in reports
    for ran_solved in rest:
        _must_read_well(ran_solved)
        for exercise_id in exercises:
            exercise = EXERCISES[exercise_id]
            reachable = exercise.max_points if torch.cuda.is_available() else exercise.correctness_points
            assert _points(ran_solved, exercise_id) == (reachable, exercise.max_points)


def test_the_syllabus_knows_what_was_solved(checkout: Path, course: dict[str, Any], tmp_path: Path) -> None:
    """The syllabus shows the points that `check` gave the same learner in a lesson."""
    path = "03_triton/01_add_vectors.ipynb"
    solved = _solved(checkout / "course" / path, checkout)
    needed = [cell for cell in solved.cells if "import benchmark" in cell.source or cell.id.endswith("vector_add")]
    solved.cells = needed
    _run(solved, tmp_path / "03_triton")
    (ran,) = _run(course["README.ipynb"], tmp_path)
    _must_read_well(ran)
    shown = " ".join(_text(output) for _, output in _outputs(ran))
    earned = EXERCISES["vector_add"]
    points = earned.max_points if torch.cuda.is_available() else earned.correctness_points
    assert re.search(rf"Add two vectors\s+{points:g} of {earned.max_points:g}", shown), shown


def test_a_prediction_is_answered(course: dict[str, Any], tmp_path: Path) -> None:
    """A learner who fills in the three dots sees the answer and whether the prediction was right."""
    notebook = copy.deepcopy(course["03_triton/01_add_vectors.ipynb"])
    (at, *_) = (i for i, cell in enumerate(notebook.cells) if "prediction = ..." in cell.source)
    notebook.cells = notebook.cells[: at + 2]
    notebook.cells[at].source = notebook.cells[at].source.replace("...", "2")
    (ran,) = _run(notebook, tmp_path)
    assert "predicted: 2 threads\ncomputed:  2 threads\nRight." in _text(ran.cells[at + 1].outputs[0])
