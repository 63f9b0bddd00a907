"""Grading on Gradescope: its results file for a student's notebooks, and the zip file of an autograder.

    python -m grader.classroom.term.gradescope SUBMISSION CHAPTER RESULTS

The zip file runs this in Gradescope's container, which has no GPU and no sandbox.
"""

from __future__ import annotations

import json
import shlex
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.classroom.answers import Result
from grader.errors import ClassroomError, GraderError
from grader.exercise import Exercise
from grader.exercises import EXERCISES, class_gates, found
from grader.feedback.report import as_text
from grader.submission import from_file
from grader.verdict import Verdict
from grader.words import harmless, on_one_line

if TYPE_CHECKING:
    from grader.judge.service import Judge

_SETUP = """\
#!/usr/bin/env bash
set -e
apt-get update && apt-get install -y g++ python3-pip
python3 -m pip install uv
uv venv --python 3.11 /autograder/venv
uv pip install --python /autograder/venv/bin/python torch=={torch} --index-url https://download.pytorch.org/whl/cpu
uv pip install --python /autograder/venv/bin/python triton=={triton} /autograder/source/{wheel}
"""
_RUN = """\
#!/usr/bin/env bash
root=${{AUTOGRADER:-/autograder}}
export GRADER_COURSE=$root/source/course
results=$root/results/results.json
exec "$root/venv/bin/python" -m grader.classroom.term.gradescope "$root/submission" {chapter} "$results"
"""


@dataclass(frozen=True)
class AutograderResult(Result):
    """The zip file that was written, and its exercises."""

    file: str
    exercises: tuple[str, ...]

    def to_text(self) -> str:
        return f"{self.file} grades {', '.join(self.exercises)}: upload it as the autograder of an assignment."


def write_autograder(course: Path, chapter: str, wheel: Path, file: Path) -> AutograderResult:
    """Write the zip file of an autograder for a chapter: the wheel, and the course's own exercises and gates.

    Raises:
        ClassroomError: the chapter has no exercise, or there is no wheel.
    """
    from importlib.metadata import version

    found.use(course)
    exercises = _of(chapter)
    if wheel.suffix != ".whl" or not wheel.is_file():
        raise ClassroomError(f"{wheel} is not a wheel: `make wheel` writes one into dist/.")
    own = [*sorted((course / found.FOLDER).glob("*.py")), *[course / class_gates.NAME]]
    pins = {name: version(name).partition("+")[0] for name in ("torch", "triton")}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        _add(made, "setup.sh", _SETUP.format(wheel=shlex.quote(wheel.name), **pins))
        _add(made, "run_autograder", _RUN.format(chapter=shlex.quote(chapter)))
        made.write(wheel, wheel.name)
        made.writestr("course/.grader/about", "The course's own exercises and gates.\n")
        for path in filter(Path.is_file, own):
            made.write(path, f"course/{path.relative_to(course)}")
    return AutograderResult(str(file), tuple(each.id for each in exercises))


def results(submission: Path, chapter: str, judge: Judge) -> dict[str, Any]:
    """Gradescope's results for the notebooks in a folder: a test per exercise, and a leaderboard with each speed.

    The most that a test can give is what this machine can measure.
    """
    tests, board = [], []
    for exercise in _of(chapter):
        try:
            path = next(iter(sorted(submission.rglob(f"{exercise.notebook}.ipynb"))), None)
            if path is None:
                raise GraderError(f"{exercise.notebook}.ipynb was not handed in.")
            own = from_file(path, exercise.id)
            verdict = judge.with_why(judge.grade(own.source, exercise.id), own.source)
            said, got, most = as_text(verdict, own.source), verdict.points, verdict.reachable_points
            board += _speed(exercise, verdict)
        except GraderError as error:
            said, got, most = on_one_line(str(error)), 0.0, float(exercise.correctness_points)
        tests.append(
            {"name": exercise.title, "score": got, "max_score": most, "output": harmless(said), "visibility": "visible"}
        )
    total = sum(float(str(test["score"])) for test in tests)
    points = {"name": "Points", "value": total, "order": "desc"}
    return {"score": total, "tests": tests, "leaderboard": [points, *board], "stdout_visibility": "hidden"}


def _speed(exercise: Exercise, verdict: Verdict) -> list[dict[str, Any]]:
    ratios = [gate.ratio for gate in verdict.gates if gate.ratio is not None]
    return [{"name": exercise.title, "value": round(ratios[0], 3), "order": "desc"}] if ratios else []


def _of(chapter: str) -> list[Exercise]:
    exercises = [each for each in EXERCISES.values() if each.chapter == chapter]
    if not exercises:
        chapters = ", ".join(sorted({each.chapter for each in EXERCISES.values()}))
        raise ClassroomError(f"No exercise is in a chapter {chapter!r}. The chapters are: {chapters}.")
    return exercises


def _add(made: zipfile.ZipFile, name: str, text: str) -> None:
    about = zipfile.ZipInfo(name)
    about.external_attr = 0o755 << 16  # Gradescope runs it
    made.writestr(about, text)


def main(arguments: list[str]) -> int:
    """In Gradescope's container: grade the folder, and write the results file."""
    from grader.judge.service import Judge

    submission, chapter, file = arguments
    with Judge("auto", sandbox=False) as judge:
        text = json.dumps(results(Path(submission), chapter, judge))
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
