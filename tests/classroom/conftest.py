"""A small course with nbgrader's own machinery and, on request, a fake judge that returns chosen verdicts."""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.exercises import find
from grader.submission.file_reading import grade_id_of
from grader.verdict import Environment, Failure, Finding, Verdict

ASSIGNMENT = "03_triton"
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep reads and writes inside tmp_path, away from the user's settings and the machine's exchange."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(folder))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    monkeypatch.delenv("JUPYTER_CONFIG_PATH", raising=False)
    return folder


@functools.cache
def _alembic_version() -> str:
    from nbgrader.api import get_alembic_version

    return str(get_alembic_version())


@pytest.fixture
def quick_gradebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask `alembic` for a new gradebook's version only once, because each call takes a second."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path)
        version = _alembic_version()
    monkeypatch.setattr("nbgrader.api.get_alembic_version", lambda: version)


class ObedientJudge:
    """Gives the points in a submission's comment `# points: 7`, and raises the errors that a test sets."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.errors: list[BaseException | None] = []  # for the next calls; None: no error
        self.log = ""
        self.lost = 0.0  # the points that its machine cannot give
        self.findings: tuple[Finding, ...] = ()
        self.failure: Failure | None = None
        self.asked_for: set[tuple[str, bool]] = set()
        self.expected: list[list[tuple[str, str]]] = []

    def __call__(self, device: str, sandbox: bool) -> ObedientJudge:
        self.asked_for.add((device, sandbox))
        return self

    def expect(self, submissions: list[tuple[str, str]]) -> None:
        self.expected.append(submissions)

    def grade(
        self, source: str, exercise_id: str, *, timed: bool = True, kernels: bool = False, progress: Any = None
    ) -> Verdict:
        self.sources.append(source)
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        exercise = find(exercise_id)
        asked = re.search(r"# points: (\S+)", source)
        points = float(asked.group(1)) if asked else 0.0
        return Verdict(
            exercise=exercise_id,
            title=exercise.title,
            status="passed" if points == exercise.max_points else "failed",
            points=points,
            max_points=exercise.max_points,
            reachable_points=exercise.max_points - self.lost,
            submission_sha256="0" * 64,
            environment=Environment("simulator"),
            failure=self.failure,
            findings=self.findings,
            log=self.log,
        )

    def with_why(self, verdict: Verdict, source: str) -> Verdict:
        return verdict


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> ObedientJudge:
    """Replace this process's judge by an obedient one, which runs nothing and so needs no sandbox."""
    monkeypatch.setattr("grader.judge.sandbox.must_be_caged", lambda: None)
    obedient = ObedientJudge()
    monkeypatch.setattr("grader.judge.service.shared_judge", obedient)
    return obedient


def code(source: str, grade_id: str = "", **nbgrader: Any) -> dict[str, Any]:
    """A code cell, with nbgrader metadata if it has a grade_id."""
    flags = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    metadata = {"nbgrader": {"grade_id": grade_id, **flags, **nbgrader}} if grade_id else {}
    return {"cell_type": "code", "metadata": metadata, "source": source, "outputs": [], "execution_count": None}


def exercise_cells(exercise_id: str) -> list[dict[str, Any]]:
    """The solution cell and check cell of a source notebook."""
    parameters = ", ".join(find(exercise_id).parameters)
    solution = (
        f"def {exercise_id}({parameters}):\n    ### BEGIN SOLUTION\n    solved = 1  # points: 3\n    ### END SOLUTION\n"
    )
    points = find(exercise_id).max_points
    return [
        code(solution, exercise_id, solution=True),
        code(f"check({exercise_id})", f"check-{exercise_id}", grade=True, locked=True, points=points),
    ]


def write_notebook(path: Path, cells: list[dict[str, Any]]) -> None:
    """A notebook file with these cells."""
    cells = [{**cell, "id": f"c{index}"} for index, cell in enumerate(cells)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


class Classroom:
    """A course of one assignment, with learners who hand in what a test makes of the released notebooks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._second = 0

    def released(self, notebook: str) -> dict[str, Any]:
        """The learner's version of a notebook."""
        path = self.folder / "release" / ASSIGNMENT / f"{notebook}.ipynb"
        return dict(json.loads(path.read_text(encoding="utf-8")))

    def hand_in(self, student: str, edit: Edit, notebook: str = "03_fuse_a_softmax", when: str = "") -> Path:
        """Write a student's submission as `collect` would; later calls are later submissions."""
        self._second += 1
        target = self.folder / "submitted" / student / ASSIGNMENT
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder / "release" / ASSIGNMENT, target)
        document = copy.deepcopy(self.released(notebook))
        edit(document)
        path = target / f"{notebook}.ipynb"
        path.write_text(json.dumps(document), encoding="utf-8")
        when = when or f"2026-01-01 00:00:{self._second:02}.000000 UTC"
        (target / "timestamp.txt").write_text(when, encoding="utf-8")
        (target / "submission_secret.txt").write_text(f"secret-of-{student}-0123456789", encoding="utf-8")
        return path

    def gradebook(self) -> Any:
        """nbgrader's own gradebook, which the caller closes."""
        from nbgrader.api import Gradebook

        return Gradebook(f"sqlite:///{self.folder / 'gradebook.db'}", "gpu-course")

    def grade(self, student: str, grade_id: str = "check-softmax", notebook: str = "03_fuse_a_softmax") -> Any:
        """The automatic score of a cell in the gradebook, and whether it needs manual grading."""
        with self.gradebook() as gradebook:
            found = gradebook.find_grade(grade_id, notebook, ASSIGNMENT, student)
            return found.auto_score, found.needs_manual_grade

    def autograded(self, student: str, notebook: str = "03_fuse_a_softmax") -> dict[str, Any]:
        """The notebook after autograding."""
        path = self.folder / "autograded" / student / ASSIGNMENT / f"{notebook}.ipynb"
        return dict(json.loads(path.read_text(encoding="utf-8")))


def cell_of(notebook: dict[str, Any], grade_id: str) -> dict[str, Any]:
    """The one cell with this grade_id."""
    (cell,) = [cell for cell in notebook["cells"] if grade_id_of(cell) == grade_id]
    return cell  # type: ignore[no-any-return]


def change(grade_id: str, **changes: Any) -> Edit:
    """An edit of the cells with this grade_id."""

    def edit(notebook: dict[str, Any]) -> None:
        for cell in notebook["cells"]:
            if grade_id_of(cell) == grade_id:
                cell.update(changes)

    return edit


def solve(points: float, exercise_id: str = "softmax") -> Edit:
    """An edit that writes a solution worth these points."""
    parameters = ", ".join(find(exercise_id).parameters)
    return change(exercise_id, source=f"def {exercise_id}({parameters}):\n    pass  # points: {points}\n")


@pytest.fixture
def new_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_gradebooks: None) -> Callable[..., Classroom]:
    """Create a released course whose source notebooks have the two exercises and, on request, further cells."""
    from grader.authoring import build
    from grader.classroom import class_actions

    def make(*more: dict[str, Any], points: float | None = None) -> Classroom:
        softmax = exercise_cells("softmax")
        if points is not None:
            softmax[1]["metadata"]["nbgrader"]["points"] = points

        def instructor_notebooks(dest: Path) -> None:
            write_notebook(dest / ASSIGNMENT / "01_add_vectors.ipynb", exercise_cells("vector_add"))
            write_notebook(dest / ASSIGNMENT / "03_fuse_a_softmax.ipynb", [code("import torch"), *softmax, *more])

        monkeypatch.setattr(build, "instructor_notebooks", instructor_notebooks)
        folder = tmp_path / "course"
        class_actions.init(folder)
        class_actions.release(folder, ASSIGNMENT)
        return Classroom(folder)

    return make


@pytest.fixture
def classroom(new_course: Callable[..., Classroom]) -> Classroom:
    """A course with `vector_add` and `softmax`, released."""
    return new_course()
