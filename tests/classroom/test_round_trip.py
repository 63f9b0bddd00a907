"""A whole course with nbgrader's own commands and the real judge, from source notebooks to grades and feedback."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grader.authoring import stubs
from grader.classroom import class_actions, settings
from grader.exercises import EXERCISES, find
from grader.judge.sandbox import strength
from grader.judge.service import Judge
from tests.classroom.conftest import cell_of, code

# All tests share one course, because making it takes minutes.
pytestmark = [pytest.mark.xdist_group("round trip"), pytest.mark.timeout(1800)]

ASSIGNMENT = "03_triton"
NOTEBOOKS = {"vector_add": "01_add_vectors", "softmax": "03_fuse_a_softmax"}
PROJECT = Path(__file__).resolve().parents[2]

FORGE_SQL = """
import sqlite3
def forge():
    try:
        book = sqlite3.connect({gradebook!r}, timeout=1)
        book.execute("UPDATE grade SET auto_score = 200, manual_score = 200")
        book.commit()
    except sqlite3.Error:
        pass
forge()
"""
FORMATTER = """
class Ten:
    def __repr__(self):
        return "10.0"
try:
    get_ipython().display_formatter.formatters["text/plain"].for_type(object, lambda *_: "10.0")
except NameError:
    pass
def softmax(x, out):
    return Ten()
"""
EXIT = "import os\nos._exit(0)\ndef softmax(x, out): ..."
PRINT = "import sys\nprint(10.0)\nprint(10.0, file=sys.stderr)\n"
TRANSFORMER = """
import ast
class Strip(ast.NodeTransformer):
    def visit_Call(self, node):
        return ast.copy_location(ast.Constant(10.0), node)
get_ipython().ast_transformers.append(Strip())
check = lambda function: 10.0
"""


@dataclass
class Course:
    """The folders, and the exported scores by student."""

    folder: Path
    exchange: Path
    work: Path
    scores: dict[str, float]
    log: str

    def graded(self, student: str, exercise: str = "softmax") -> dict[str, Any]:
        path = self.folder / "autograded" / student / ASSIGNMENT / f"{NOTEBOOKS[exercise]}.ipynb"
        return dict(json.loads(path.read_text(encoding="utf-8")))

    def verdict(self, student: str, exercise: str = "softmax") -> dict[str, Any]:
        return dict(cell_of(self.graded(student, exercise), f"check-{exercise}")["metadata"]["grader"]["verdict"])

    def handed_in(self, student: str) -> list[str]:
        """The exercises whose notebooks the student submitted."""
        folder = self.folder / "submitted" / student / ASSIGNMENT
        return [exercise for exercise, name in NOTEBOOKS.items() if (folder / f"{name}.ipynb").is_file()]


def submissions(gradebook: Path) -> dict[str, dict[str, str]]:
    """For each student the texts of the solution cells that differ from the stub. Only ann submits both notebooks."""
    softmax = stubs.solution("softmax")
    return {
        "ann": {"vector_add": stubs.solution("vector_add"), "softmax": softmax},
        "bob": {},
        "eve": {"softmax": FORGE_SQL.format(gradebook=str(gradebook)) + "def softmax(x, out):\n    forge()\n"},
        "fay": {"softmax": FORMATTER},
        "gus": {"softmax": EXIT},
        "hal": {"softmax": PRINT + softmax + "\n    print('done', file=sys.stderr)\n"},
        "ivy": {"softmax": softmax},  # and submits a worse version later
    }


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """A course from init to export, with six learners on this machine."""
    base = tmp_path_factory.mktemp("round_trip")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(base / "home"))
        patch.delenv("JUPYTER_CONFIG_PATH", raising=False)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
        yield _taken_through(base)


def _taken_through(base: Path) -> Course:
    folder, work = base / "course", base / "work"
    log = []

    def nbgrader(where: Path, *command: str, env: dict[str, str] | None = None) -> str:
        run = subprocess.run(
            [sys.executable, "-m", "nbgrader", *command],
            cwd=where,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        log.append(run.stderr)
        assert run.returncode == 0, f"nbgrader {' '.join(command)}\n{run.stdout}\n{run.stderr}"
        return run.stdout + run.stderr

    made = class_actions.init(folder)
    nbgrader(folder, "generate_assignment", ASSIGNMENT)
    nbgrader(folder, "release_assignment", ASSIGNMENT)
    learner = settings.learner(Path(made.exchange), work).env
    assert ASSIGNMENT in nbgrader(work, "list", env=learner)
    nbgrader(work, "fetch_assignment", ASSIGNMENT, env=learner)
    fetched = {path.name: path.read_text(encoding="utf-8") for path in (work / ASSIGNMENT).glob("*.ipynb")}

    def submit(student: str, solutions: dict[str, str]) -> None:
        for exercise, name in NOTEBOOKS.items():
            notebook = json.loads(fetched[f"{name}.ipynb"])
            if exercise in solutions:
                cell_of(notebook, exercise)["source"] = solutions[exercise]
            if student == "fay":
                notebook["cells"].insert(0, code(TRANSFORMER) | {"id": "strip"})
                score = {"output_type": "execute_result", "execution_count": 1, "metadata": {}}
                for cell in notebook["cells"]:
                    if cell["cell_type"] == "code":
                        cell["outputs"] = [{**score, "data": {"text/plain": "10.0"}}]
            path = work / ASSIGNMENT / f"{name}.ipynb"
            path.write_text(json.dumps(notebook), encoding="utf-8")
            if exercise == "vector_add" and student != "ann":
                path.unlink()
        if student == "ann":
            nbgrader(work, "submit", ASSIGNMENT, "--student", student, env=learner)
        else:
            _submit_as_the_extension_does(work, Path(learner["JUPYTER_CONFIG_PATH"]), student)

    for student, solutions in submissions(folder / "gradebook.db").items():
        submit(student, solutions)
    submit("ivy", {})
    nbgrader(folder, "collect", ASSIGNMENT)
    nbgrader(folder, "autograde", ASSIGNMENT)
    nbgrader(folder, "generate_feedback", ASSIGNMENT)
    nbgrader(folder, "release_feedback", ASSIGNMENT)
    nbgrader(work, "fetch_feedback", ASSIGNMENT, "--student", "ann", env=learner)
    nbgrader(folder, "export")
    with (folder / "grades.csv").open(newline="", encoding="utf-8") as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    return Course(folder, Path(made.exchange), work, scores, "\n".join(log))


def _submit_as_the_extension_does(work: Path, config_folder: Path, student: str) -> None:
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange import ExchangeFactory
    from traitlets.config.loader import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", path=str(config_folder)).load_config()
    config.CourseDirectory.assignment_id = ASSIGNMENT
    config.CourseDirectory.student_id = student
    config.Exchange.assignment_dir = str(work)
    coursedir, authenticator = CourseDirectory(config=config), Authenticator(config=config)
    ExchangeFactory(config=config).Submit(coursedir=coursedir, authenticator=authenticator, config=config).start()


def reachable(course: Course, exercise: str) -> float:
    """The points that this machine can give: without a GPU, those for correctness."""
    return float(course.verdict("ann", exercise)["reachable_points"])


def test_scores_in_the_gradebook_equal_the_verdicts(course: Course) -> None:
    """For every learner and exercise the exported score is the sum of the verdicts in their notebooks."""
    assert course.scores == {
        student: sum(course.verdict(student, exercise)["points"] for exercise in course.handed_in(student))
        for student in submissions(Path())
    }
    assert course.handed_in("ann") == list(NOTEBOOKS)


def test_verdicts_are_those_of_the_judge(course: Course) -> None:
    """nbgrader's autograding stores the same verdict as `grader grade` prints."""
    with Judge() as judge:
        direct = judge.grade(stubs.solution("softmax"), "softmax")
    stored = course.verdict("ann")
    assert [case["name"] for case in stored["cases"]] == [case.name for case in direct.cases]
    assert all(case["passed"] for case in stored["cases"])
    if direct.environment.device == "simulator":  # times differ from run to run, and so may gates in doubt
        assert (stored["status"], stored["points"]) == (direct.status, direct.points)


def test_reference_solutions_get_all_that_this_machine_can_give(course: Course) -> None:
    """The authors' own solutions pass, from source notebook to gradebook."""
    assert course.scores["ann"] == reachable(course, "vector_add") + reachable(course, "softmax")
    assert course.scores["ann"] >= find("vector_add").correctness_points + find("softmax").correctness_points


def test_unsolved_work_gets_nothing(course: Course) -> None:
    """The stubs get no points, and the verdict says that they are not written yet."""
    assert course.scores["bob"] == 0
    assert course.verdict("bob")["failure"]["kind"] == "not_written"


@pytest.mark.parametrize("student", ["fay", "gus"], ids=["formatter, AST transformer, forged outputs", "os._exit"])
def test_tricks_on_stock_nbgrader_gain_nothing(course: Course, student: str) -> None:
    """Cheats that get points from nbgrader's own autograding get none here."""
    assert course.scores[student] == 0


@pytest.mark.skipif(strength() != "bubblewrap", reason="the weaker sandbox lets a submission write the user's files")
def test_gradebook_cannot_be_written_by_a_submission(course: Course) -> None:
    """A solution cell that updates the gradebook by SQL changes nobody's score."""
    assert course.scores["eve"] == 0
    assert course.scores["bob"] == 0


def test_printing_to_stderr_costs_nothing(course: Course) -> None:
    """Correct work that writes to standard error keeps its points; stock nbgrader gives it 0."""
    assert course.scores["hal"] == reachable(course, "softmax")


def test_newest_submission_counts(course: Course) -> None:
    """A later, worse submission replaces an earlier, better one."""
    assert course.scores["ivy"] == 0


def test_fetched_feedback_shows_the_report(course: Course) -> None:
    """Fetched feedback shows the judge's report with cases and points, and loads no other files."""
    submitted = (course.folder / "submitted" / "ann" / ASSIGNMENT / "timestamp.txt").read_text(encoding="utf-8")
    page = course.work / ASSIGNMENT / "feedback" / submitted / f"{NOTEBOOKS['softmax']}.html"
    text = re.sub(r"<(style|script)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for case in course.verdict("ann")["cases"]:
        assert case["name"] in text
    assert "Traceback" not in text


def test_released_notebooks_hold_stubs_and_locked_checks(course: Course) -> None:
    """A fetched notebook has no solution in it, and its check cells cannot be edited."""
    for exercise, name in NOTEBOOKS.items():
        path = course.exchange / "gpu-course" / "outbound" / ASSIGNMENT / f"{name}.ipynb"
        notebook = json.loads(path.read_text(encoding="utf-8"))
        stub = "".join(cell_of(notebook, exercise)["source"])
        check = cell_of(notebook, f"check-{exercise}")
        assert "SOLUTION" not in json.dumps(notebook)
        assert stub.rstrip("\n") == stubs.unsolved(exercise).rstrip("\n")
        assert check["metadata"]["editable"] is False
        assert check["metadata"]["nbgrader"]["points"] == EXERCISES[exercise].max_points


def test_nothing_failed_on_the_way(course: Course) -> None:
    """nbgrader's own log of all steps has no error in it."""
    assert "| ERROR]" not in course.log
    assert "Traceback" not in course.log


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process runs all tests")
def test_one_process_makes_the_course_for_all(request: pytest.FixtureRequest) -> None:
    """pytest-xdist keeps a group together by this suffix. In pytest 9.2 it does not, and each makes its own course."""
    assert request.node.nodeid.endswith("@round trip")
