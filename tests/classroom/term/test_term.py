"""Tests of grader.classroom.term as an instructor uses it: one class from the roster to the files for an LMS."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any, get_args

import pytest

from grader.classroom import class_actions
from grader.classroom.rescoring import rescore
from grader.classroom.term import due_dates
from grader.classroom.term.class_grades import class_grades
from grader.classroom.term.class_statistics import ExerciseStatistics, Statistics, bug_of, class_statistics
from grader.classroom.term.grade_export import Format, as_csv, write_private
from grader.classroom.term.late_policy import LatePolicy
from grader.classroom.term.roster import import_roster
from grader.errors import ClassroomError
from grader.verdict import CaseResult, Failure, Mismatch
from tests.classroom.conftest import ASSIGNMENT, Classroom, ObedientJudge, solve
from tests.classroom.grading.test_workers import verdict_on

ROSTER = """\
ID,First name,Last name,Email
ann,Ann,Ash,ann@example.org
bob,Bob,"Birch, Jr.",bob@example.org
cyd,,,
"""


def use_policy(classroom: Classroom, method: str) -> None:
    config = classroom.folder / "nbgrader_config.py"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('penalty_method = "none"', f'penalty_method = "{method}"'), encoding="utf-8")


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_class_from_roster_to_export(classroom: Classroom, judge: ObedientJudge, tmp_path: Path) -> None:
    """Names come from the roster, late work loses 10 % per day, an extension gives it back, all formats agree."""
    roster = tmp_path / "students.csv"
    roster.write_text(ROSTER, encoding="utf-8")
    assert import_roster(classroom.folder, roster).added == ("ann", "bob", "cyd")
    assert import_roster(classroom.folder, roster).updated == ("ann", "bob", "cyd")
    use_policy(classroom, "per day")
    due_dates.set_due_date(classroom.folder, ASSIGNMENT, "2026-01-01 00:00+00:00")
    classroom.hand_in("ann", solve(10), when="2025-12-31 12:00:00.000000 UTC")
    classroom.hand_in("bob", solve(8), when="2026-01-02 01:00:00.000000 UTC")
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    wide = {row["id"]: row for row in table(as_csv(class_grades(classroom.folder)))}
    assert wide["Points possible"]["03_triton/softmax"] == "10"
    assert wide["ann"]["03_triton/softmax"] == "10"
    assert [wide["bob"][f"03_triton/{name}"] for name in ("softmax", "late penalty", "total")] == ["8", "1.6", "6.4"]
    assert [wide["cyd"][f"03_triton/{name}"] for name in ("softmax", "total")] == ["", "0"]
    due = due_dates.extend(classroom.folder, ASSIGNMENT, "bob", hours=24)
    assert (due.due, due.student) == ("2026-01-02T00:00+00:00", "bob")
    assert due.next.startswith("grader classroom rescore")
    assert {s.student: s.after for s in rescore(classroom.folder, ASSIGNMENT, feedback=False).students} == {
        "ann": 10, "bob": 7.2,
    }  # fmt: skip
    due_dates.extend(classroom.folder, ASSIGNMENT, "bob", hours=30)
    due_dates.extend(classroom.folder, ASSIGNMENT, "cyd", hours=30)
    rescore(classroom.folder, ASSIGNMENT, feedback=False)
    with classroom.gradebook() as gradebook:
        gradebook.find_grade("check-softmax", "03_fuse_a_softmax", ASSIGNMENT, "bob").extra_credit = 1.5
        gradebook.db.commit()
    grades = class_grades(classroom.folder)
    assert [student.score for student in grades.students] == [10, 9.5, 0]
    canvas = {row["SIS Login ID"]: row for row in table(as_csv(grades, "canvas"))}
    assert (canvas["bob"]["Student"], canvas["bob"][ASSIGNMENT], canvas[""][ASSIGNMENT]) == (
        "Birch, Jr., Bob",
        "9.5",
        "15",
    )
    moodle = {row["Username"]: row for row in table(as_csv(grades, "moodle"))}
    assert (moodle["ann"]["Email address"], moodle["ann"][ASSIGNMENT], moodle["cyd"][ASSIGNMENT]) == (
        "ann@example.org", "10", "",
    )  # fmt: skip
    gradescope = {row["SID"]: row for row in table(as_csv(grades, "gradescope"))}
    assert (gradescope["bob"]["Total Score"], gradescope["bob"]["Max Points"]) == ("9.5", "15")
    statistics = class_statistics(classroom.folder)
    assert statistics.missing == {ASSIGNMENT: ("cyd",)}
    (softmax,) = [each for each in statistics.exercises if each.exercise == "softmax"]
    assert (softmax.judged, softmax.passed, softmax.points) == (2, 1, (10, 8))
    assert "1 of 2 passed" in statistics.to_text()
    assert "Not submitted by: cyd" in statistics.to_html()
    assert table(statistics.to_csv())[0]["exercise"] == "vector_add"


@pytest.mark.parametrize(
    ("hours", "words"),
    [(math.nan, "cannot be an extension"), (-1, "cannot be an extension"), (math.inf, "cannot be an extension")],
)
def test_hours_that_are_none(tmp_path: Path, hours: float, words: str) -> None:
    """They are refused before anything is read."""
    with pytest.raises(ClassroomError, match=words):
        due_dates.extend(tmp_path, ASSIGNMENT, "bob", hours)


def test_what_cannot_be_extended(classroom: Classroom) -> None:
    """Without a due date, or for an unknown student, the message says what comes first."""
    with pytest.raises(ClassroomError, match="no due date to extend"):
        due_dates.extend(classroom.folder, ASSIGNMENT, "bob", 1)
    due_dates.set_due_date(classroom.folder, ASSIGNMENT, "2026-01-01 00:00")
    with pytest.raises(ClassroomError, match="no student 'bob'"):
        due_dates.extend(classroom.folder, ASSIGNMENT, "bob", 1)
    for text in ("tomorrow", "9999-12-31 23:59", "0026-12-01 18:00"):
        with pytest.raises(ClassroomError, match="is not a time"):
            due_dates.set_due_date(classroom.folder, ASSIGNMENT, text)
    assert "has no due date" in due_dates.set_due_date(classroom.folder, ASSIGNMENT, "none").to_text()


def test_without_a_due_date_nobody_has_an_extension(classroom: Classroom, judge: ObedientJudge) -> None:
    """nbgrader would fail for each student with one; then nothing is late."""
    use_policy(classroom, "zero")
    due_dates.set_due_date(classroom.folder, ASSIGNMENT, "2025-01-01 00:00")
    classroom.hand_in("ann", solve(4))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    due_dates.extend(classroom.folder, ASSIGNMENT, "ann", 1)
    due_dates.set_due_date(classroom.folder, ASSIGNMENT, "none")
    (ann,) = rescore(classroom.folder, ASSIGNMENT, feedback=False).students
    assert (ann.before, ann.after) == (0, 4)
    classroom.hand_in("ann", solve(5))
    assert class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).students[0].score == 5


def test_a_notebook_that_is_left_out_later_costs_no_penalty(classroom: Classroom, judge: ObedientJudge) -> None:
    """Its points are lost, so their penalty is not deducted from the other notebook's."""
    use_policy(classroom, "per day")
    due_dates.set_due_date(classroom.folder, ASSIGNMENT, "2026-01-01 00:00+00:00")
    first = solve(5, "vector_add")
    classroom.hand_in("ann", first, notebook="01_add_vectors", when="2026-01-01 01:00:00.000000 UTC")
    assert class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).students[0].score == 4.5
    path = classroom.hand_in("ann", solve(8), when="2026-01-01 02:00:00.000000 UTC")
    path.with_name("01_add_vectors.ipynb").unlink()
    (ann,) = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).students
    assert ann.score == pytest.approx(7.2)


def test_a_gradebook_from_canvas_is_a_roster(classroom: Classroom, tmp_path: Path) -> None:
    """Its `ID` is Canvas's own number, which the export to Canvas needs; students log in with another name."""
    text = 'Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"Ash, Ann",4711,S1,ann,A\n'
    (tmp_path / "students.csv").write_text(text, encoding="utf-8")
    assert import_roster(classroom.folder, tmp_path / "students.csv").added == ("ann",)
    assert class_grades(classroom.folder).students[0].lms_user_id == "4711"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name\nann\n", "no column"),
        ("id\nann\nann\n", "line 3: ann is in it twice"),
        ("id\n../x\n", "line 2: '../x'"),
        (f'id\n"{"a" * 200_000}"\n', "cannot be read as a table: field larger"),
    ],
    ids=["no ids", "twice", "path", "large"],
)
def test_a_roster_with_a_bad_row_changes_nothing(tmp_path: Path, text: str, words: str) -> None:
    """The message names the line."""
    (tmp_path / "students.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ClassroomError, match=words):
        import_roster(tmp_path, tmp_path / "students.csv")


@pytest.mark.parametrize(
    ("seconds", "grace", "penalty"),
    [(1, 0, 1), (24 * 3600, 0, 1), (24 * 3600 + 1, 0, 2), (20 * 24 * 3600, 0, 10), (60, 1, None), (61, 1, 1)],
)
def test_each_day_begun_costs_ten_percent(seconds: float, grace: float, penalty: float | None) -> None:
    """Never more than all points; work within the grace period is not late."""
    policy = LatePolicy(penalty_method="per day", grace_minutes=grace)
    assert policy.late_submission_penalty("ann", 10, seconds) == penalty


@pytest.mark.filterwarnings("ignore")  # SQLAlchemy 2.1 on nbgrader 0.9.6
def test_cells_of_one_name_in_two_notebooks_are_two_columns(tmp_path: Path, quick_gradebooks: None) -> None:
    """nbgrader tells them apart by their notebooks, and no points may be lost."""
    from nbgrader.api import Gradebook

    settings = f"c = get_config()\nc.CourseDirectory.course_id = 'a'\nc.Exchange.root = {str(tmp_path)!r}\n"
    (tmp_path / "nbgrader_config.py").write_text(settings, encoding="utf-8")
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", "a") as gradebook:
        gradebook.add_assignment("week1")
        for notebook, points in (("one", 3.0), ("two", 4.0)):
            gradebook.add_notebook(notebook, "week1")
            gradebook.add_grade_cell("answer", notebook, "week1", max_score=points, cell_type="markdown")
        gradebook.add_student("ann")
        gradebook.add_submission("week1", "ann")
        gradebook.find_grade("answer", "one", "week1", "ann").manual_score = 2.0
        gradebook.find_grade("answer", "two", "week1", "ann").manual_score = 4.0
        gradebook.db.commit()
    grades = class_grades(tmp_path)
    assert grades.maxima == {"week1": {"one/answer": 3, "two/answer": 4}}
    assert grades.students[0].work["week1"].cells == {"one/answer": 2, "two/answer": 4}
    assert grades.students[0].score == 6


def test_names_are_no_formulas(classroom: Classroom, tmp_path: Path) -> None:
    """Students choose their names on many platforms; a spreadsheet must show them and not compute them."""
    roster = tmp_path / "students.csv"
    roster.write_text('id,first_name,last_name,email\nann,=1+1,"-x, Jr.",@e\nbob,,,\n', encoding="utf-8")
    import_roster(classroom.folder, roster)
    grades = class_grades(classroom.folder)
    for style in get_args(Format):
        cells = [cell for row in csv.reader(io.StringIO(as_csv(grades, style))) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
        assert "'-x, Jr." in ", ".join(cells)
    bug = ExerciseStatistics(ASSIGNMENT, "softmax", 1, 0, 0, (0.0,), 10, (("=1+1: no", 1),))
    assert table(Statistics((bug,), {}).to_csv())[1]["bug"] == "'=1+1: no"


def test_files_with_names_are_closed(tmp_path: Path) -> None:
    """Others cannot read the file, even if it was there and open; a folder that is missing is one sentence."""
    file = tmp_path / "grades.csv"
    file.touch(mode=0o644)
    write_private(file, "ann")
    assert (file.stat().st_mode & 0o077, file.read_text(encoding="utf-8")) == (0, "ann")
    with pytest.raises(ClassroomError, match=r"cannot be written: No such file or directory\.$"):
        write_private(tmp_path / "none" / "grades.csv", "ann")


BUGS: dict[str, tuple[Any, str]] = {
    "right": (verdict_on("a", cases=(CaseResult("one", True),)), ""),
    "suspect": (
        verdict_on("a", cases=(CaseResult("one", False, Mismatch("out", (1,), 1, 1, suspect="No maximum.")),)),
        "No maximum.",
    ),
    "wrong": (verdict_on("a", cases=(CaseResult("one", False, Mismatch("out", (1,), 1, 1)),)), "in the case one"),
    "failure": (verdict_on("a", failure=Failure("compile", "It does not compile.")), "It does not compile."),
    "stub": (verdict_on("a", failure=Failure("not_written", "It is not written yet.")), ""),
}


@pytest.mark.parametrize(("verdict", "words"), BUGS.values(), ids=BUGS)
def test_a_bug_is_named_by_its_suspect_first(verdict: Any, words: str) -> None:
    """Then by the failure, then by the first wrong case; a stub has no bug."""
    assert words in bug_of(verdict)
    assert bool(words) == bool(bug_of(verdict))


def test_statistics_escape_what_a_submission_printed(classroom: Classroom, judge: ObedientJudge) -> None:
    """A message in a verdict can hold a learner's text."""
    judge.failure = Failure("exception", "<script>alert(1)</script>")
    classroom.hand_in("ann", solve(0))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    page = class_statistics(classroom.folder).to_html()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
