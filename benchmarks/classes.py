"""One class in two courses, for the throughput bench: one course for this judge, one for stock nbgrader.

The students hand in this course's notebooks, in which nbgrader runs every cell. With `bare`, each notebook has two
cells: a solution, and a check as an instructor without this project would write it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import site
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.material import MIXED, Text, honest, unique
from grader.authoring.build import instructor_notebooks
from grader.exercise import Exercise
from grader.exercises import find
from grader.hardware import cuda_home, torch_cuda

STUDENTS = 20

# A check without this project: compare every shape with torch, then time with CUDA events.
_CHECK = """\
import torch

def _inputs(shapes):
    return [torch.randn(shape, device={device!r}) for shape in shapes]

def _expected({names}):
    return {oracle}

def _time_us(function, arguments):
    for _ in range(3):
        function(*arguments)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(20):
        function(*arguments)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 20 * 1e3

for shapes in {shapes!r}:
    inputs = _inputs(shapes)
    out = torch.full(shapes[0], float("nan"), device={device!r})
    {entry}(*inputs, out)
    torch.testing.assert_close(out, _expected(*inputs), rtol=1e-4, atol=1e-5)

for shapes in {timed!r}:
    inputs = _inputs(shapes)
    out = torch.empty(shapes[0], device={device!r})
    ours, theirs = _time_us({entry}, [*inputs, out]), _time_us(_expected, inputs)
    print(f"{{shapes[0]}}: {{ours:.1f}} µs, torch {{theirs:.1f}} µs")
    assert ours <= 2 * theirs, "too slow"
"""
_ORACLES = {"vector_add": "x + y", "softmax": "torch.softmax(x, 1)", "square_matrix": "x * x"}


@dataclass(frozen=True)
class Class:
    """A course folder; `handed_in` lists (assignment, student, number of notebooks) in grading order."""

    folder: Path
    handed_in: list[tuple[str, str, int]]

    @property
    def notebooks(self) -> int:
        return sum(count for _, _, count in self.handed_in)

    def api(self) -> Any:
        """Return nbgrader's API with the course's settings, as its commands see them."""
        from grader.classroom import course_folder

        return course_folder.api(self.folder)


def texts(
    device: str, students: int = STUDENTS, exercises: Sequence[str] = (*MIXED, "grayscale")
) -> dict[str, dict[str, Text]]:
    """Return a unique honest text by student and exercise, the same on every call. Half are the reference solution."""
    found: dict[str, dict[str, Text]] = {f"student{number:02}": {} for number in range(students)}
    for exercise in exercises:
        reference, *others = honest(exercise, device)
        random.Random(exercise).shuffle(others)
        for number, own in enumerate(found.values()):
            text = others[number // 2 % len(others)] if number % 2 and others else reference
            own[exercise] = unique(text, f"student {number}")
    return found


def check_text(exercise: Exercise, device: str) -> str:
    """Return the check cell of the stock course; without a GPU it times nothing."""
    shapes = [[array.shape for array in case.inputs] for case in exercise.cases if case.fill == "normal"]
    timed = [[array.shape for array in case.inputs] for case in exercise.timed_cases]
    return _CHECK.format(
        device=device,
        names=", ".join(exercise.parameters[:-1]),
        oracle=_ORACLES[exercise.id],
        shapes=shapes if device == "cuda" else [[(3,) * len(shape) for shape in each] for each in shapes[:1]],
        entry=exercise.entry,
        timed=timed if device == "cuda" else [],
    )


def make_class(folder: Path, own: dict[str, dict[str, Text]], device: str, stock: bool, bare: bool = False) -> Class:
    """Make a course in nbgrader's layout, generate its assignments and hand in the texts. Replace an earlier one."""
    from grader.classroom import settings

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    exchange = folder.with_name(f"{folder.name}-exchange")
    exchange.mkdir(exist_ok=True)
    exchange.chmod(0o777)
    config = settings.config_text(folder.name, exchange)
    if stock:  # nbgrader's own preprocessors; only the folders are this project's
        config = config.replace("settings.apply(c)\n", "c.Execute.timeout = 300\n")
        config = config.replace("from grader.classroom import settings\n", "").replace("c.JudgeCells", "# c.JudgeCells")
    else:
        config = config.replace('"auto"', repr("simulator" if device == "cpu" else device))
    (folder / settings.CONFIG_FILE).write_text(config, encoding="utf-8")
    asked = [find(each) for each in sorted({each for sources in own.values() for each in sources})]
    if bare:
        for exercise in asked:
            check = check_text(exercise, device) if stock else f"check({exercise.entry})"
            _write_source(folder / "source" / exercise.chapter / f"{exercise.notebook}.ipynb", exercise, check)
    else:
        _write_course(folder / "source", asked)
    made = Class(folder, [])
    with _quiet():
        api = made.api()
        for assignment in sorted({exercise.chapter for exercise in asked}):
            done = api.generate_assignment(assignment, force=True)
            if not done["success"]:
                raise SystemExit(f"{assignment} cannot be generated: {done}")
    for student, sources in own.items():
        for assignment in sorted({find(exercise).chapter for exercise in sources}):
            count = _hand_in(folder, assignment, student, sources)
            made.handed_in.append((assignment, student, count))
    return made


def _hand_in(folder: Path, assignment: str, student: str, sources: dict[str, Text]) -> int:
    target = folder / "submitted" / student / assignment
    target.mkdir(parents=True)
    (target / "timestamp.txt").write_text("2026-01-01 00:00:00.000000 UTC", encoding="utf-8")
    names = {find(exercise).notebook for exercise in sources if find(exercise).chapter == assignment}
    for name in sorted(names):
        released = folder / "release" / assignment / f"{name}.ipynb"
        notebook = json.loads(released.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
            if grade_id in sources:
                cell["source"] = sources[grade_id].source
        (target / released.name).write_text(json.dumps(notebook), encoding="utf-8")
    return len(names)


def _write_course(source: Path, asked: Sequence[Exercise]) -> None:
    """Write the course's notebooks that have these exercises."""
    with tempfile.TemporaryDirectory() as scratch:
        instructor_notebooks(Path(scratch))
        for exercise in asked:
            (source / exercise.chapter).mkdir(parents=True, exist_ok=True)
            name = f"{exercise.chapter}/{exercise.notebook}.ipynb"
            shutil.copyfile(Path(scratch, name), source / name)


def _write_source(path: Path, exercise: Exercise, check: str) -> None:
    parameters = ", ".join(exercise.parameters)
    solution = f"def {exercise.entry}({parameters}):\n    ### BEGIN SOLUTION\n    pass\n    ### END SOLUTION\n"
    cells = [
        _cell(0, solution, exercise.id, solution=True),
        _cell(1, check, f"check-{exercise.id}", grade=True, locked=True, points=exercise.max_points),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def _cell(number: int, source: str, grade_id: str, **nbgrader: Any) -> dict[str, Any]:
    flags = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    return {
        "cell_type": "code",
        "id": f"c{number}",
        "metadata": {"nbgrader": {"grade_id": grade_id, **flags, **nbgrader}},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLAlchemy warns about nbgrader, nbformat about notebooks
        yield


@contextlib.contextmanager
def surroundings(folder: Path) -> Iterator[None]:
    """Give nbgrader, its kernels and their caches a private home, and put `alembic` on the path for nbgrader."""
    home, programs = folder / "home", folder / "bin"
    for each in (home, programs):
        each.mkdir(parents=True, exist_ok=True)
    shim = programs / "alembic"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m alembic.config "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    named = ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    wanted = {name: str(home) for name in named} | {
        "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath), str(programs)]),
        "PYTHONPATH": os.pathsep.join(paths),  # a kernel starts in its notebook's folder
        "TRITON_CACHE_DIR": str(home / "triton"),
        "TORCH_EXTENSIONS_DIR": str(home / "extensions"),
        "PYTHONUSERBASE": site.getuserbase(),  # as without the private home
    }
    if (toolkit := cuda_home(torch_cuda())) is not None:
        wanted["CUDA_HOME"] = str(toolkit)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        with _quiet():
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
