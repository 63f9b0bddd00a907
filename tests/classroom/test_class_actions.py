"""Tests of grader.classroom.class_actions: steps can be repeated, and report what nbgrader passes over."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.classroom import class_actions
from grader.classroom.answers import AutogradeResult, StudentResult
from grader.classroom.copying import remove_all_but
from grader.classroom.run_log import run_log
from grader.errors import ClassroomError
from grader.submission import file_reading
from tests.classroom.conftest import ASSIGNMENT, Classroom, ObedientJudge, cell_of, code, solve

PROJECT = Path(__file__).resolve().parents[2]


def add_to_source(classroom: Classroom, grade_id: str, source: str, **metadata: Any) -> None:
    """Add a cell to the instructor's softmax notebook."""
    path = classroom.folder / "source" / ASSIGNMENT / "03_fuse_a_softmax.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"].append({**code(source, grade_id, **metadata), "id": grade_id})
    path.write_text(json.dumps(notebook), encoding="utf-8")


def test_release_puts_the_learners_version_into_the_exchange(classroom: Classroom) -> None:
    """A release has the stub and not the solution, and everyone can read it."""
    result = class_actions.release(classroom.folder, ASSIGNMENT)
    outbound = Path(result.path)
    assert outbound == classroom.folder.with_name("course-exchange") / "gpu-course" / "outbound" / ASSIGNMENT
    assert result.notebooks == ("01_add_vectors.ipynb", "03_fuse_a_softmax.ipynb")
    text = (outbound / "03_fuse_a_softmax.ipynb").read_text(encoding="utf-8")
    assert "not written yet" in text
    assert "solved = 1" not in text
    assert (outbound / "03_fuse_a_softmax.ipynb").stat().st_mode & 0o444 == 0o444


def test_release_again_changes_nothing(classroom: Classroom) -> None:
    """A second release of the same version succeeds and says so; for nbgrader it is an error."""
    result = class_actions.release(classroom.folder, ASSIGNMENT)
    assert (result.outcome, result.ok) == ("unchanged", True)
    assert "is already released and has not changed" in result.to_text()


def test_release_names_the_test_cells_that_nobody_will_run(classroom: Classroom, judge: ObedientJudge) -> None:
    """Cells with asserts get no points from the judge; the check cells and cells without points are not named."""
    assert "does not run" not in class_actions.release(classroom.folder, ASSIGNMENT).to_text()
    add_to_source(classroom, "test-sum", "assert 1 + 1 == 2", grade=True, locked=True, points=2)
    add_to_source(classroom, "note", "x = 1", locked=True)
    said = class_actions.release(classroom.folder, ASSIGNMENT, force=True).to_text()
    assert "autograde does not run 1 test cell of your own in 03_fuse_a_softmax.ipynb (test-sum)" in said
    classroom.hand_in("ada", lambda notebook: None)
    assert class_actions.autograde(classroom.folder, ASSIGNMENT).students[0].needs_manual_grade


def test_release_of_another_version_needs_force(classroom: Classroom) -> None:
    """A changed notebook is replaced only with force, and the message names it."""
    add_to_source(classroom, "note", "x = 1", locked=True)
    with pytest.raises(ClassroomError, match=r"differs in 03_fuse_a_softmax\.ipynb.*--force") as caught:
        class_actions.release(classroom.folder, ASSIGNMENT)
    assert "01_add_vectors" not in str(caught.value)
    result = class_actions.release(classroom.folder, ASSIGNMENT, force=True)
    assert result.outcome == "replaced"
    assert "x = 1" in (Path(result.path) / "03_fuse_a_softmax.ipynb").read_text(encoding="utf-8")


def test_failed_release_leaves_the_last_one(classroom: Classroom, judge: ObedientJudge) -> None:
    """If nbgrader refuses a change because there are submissions, the generated version is kept."""
    classroom.hand_in("ann", solve(1))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    before = classroom.released("03_fuse_a_softmax")
    add_to_source(classroom, "test-new", "pass", grade=True, locked=True, points=1)
    with pytest.raises(ClassroomError, match="cannot be generated: Cannot add or remove cells") as caught:
        class_actions.release(classroom.folder, ASSIGNMENT, force=True)
    assert "\n" not in str(caught.value)
    assert classroom.released("03_fuse_a_softmax") == before


def _interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def change_points(classroom: Classroom, points: float) -> None:
    """Change the points of the softmax check cell."""
    path = classroom.folder / "source" / ASSIGNMENT / "03_fuse_a_softmax.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cell_of(notebook, "check-softmax")["metadata"]["nbgrader"]["points"] = points
    path.write_text(json.dumps(notebook), encoding="utf-8")


def state(classroom: Classroom) -> dict[str, Any]:
    """The state that a release may change: the points in the gradebook, `release/` and the exchange."""
    folders = (classroom.folder / "release", classroom.folder.with_name("course-exchange"))
    files = {path: path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}
    with classroom.gradebook() as gradebook:
        maximum = gradebook.find_assignment(ASSIGNMENT).max_score
        shares = [
            (each.student.id, each.score, each.max_score) for each in gradebook.assignment_submissions(ASSIGNMENT)
        ]
    return {"files": files, "maximum": maximum, "shares": shares}


@pytest.mark.parametrize("why", ["another version", "cells added", "exchange", "Ctrl-C", "Ctrl-C in the exchange"])
def test_a_release_that_is_refused_changes_nothing(
    classroom: Classroom, judge: ObedientJudge, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused release changes neither the gradebook, and so everyone's share, nor `release/`, nor the exchange."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    before = state(classroom)
    change_points(classroom, 20)
    expected: type[BaseException] = ClassroomError
    if why == "cells added":
        add_to_source(classroom, "test-new", "pass", grade=True, locked=True, points=1)
    elif why == "exchange":
        monkeypatch.setattr(
            "nbgrader.exchange.default.ExchangeReleaseAssignment.copy_files", lambda app: app.fail("no")
        )
    elif why.startswith("Ctrl-C"):
        step = "exchange.default.ExchangeReleaseAssignment.copy_files"
        step = step if "exchange" in why else "converters.GenerateAssignment.set_permissions"
        monkeypatch.setattr(f"nbgrader.{step}", _interrupted)
        expected = KeyboardInterrupt
    with pytest.raises(expected):
        class_actions.release(classroom.folder, ASSIGNMENT, force=why != "another version")
    assert state(classroom) == before


def test_a_release_that_was_cut_short_is_completed(classroom: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the new version is in the exchange, the next call updates the gradebook and `release/`."""
    change_points(classroom, 20)
    with monkeypatch.context() as patch:
        real, calls = class_actions._generate, [0]

        def second_fails(api: Any, assignment: str) -> None:
            calls[0] += 1
            if calls[0] == 2:
                raise KeyboardInterrupt
            real(api, assignment)

        patch.setattr(class_actions, "_generate", second_fails)
        with pytest.raises(KeyboardInterrupt):
            class_actions.release(classroom.folder, ASSIGNMENT, force=True)
    assert class_actions.release(classroom.folder, ASSIGNMENT).outcome == "unchanged"
    assert class_actions.status(classroom.folder).assignments[0].max_score == 25
    assert '"points": 20' in json.dumps(classroom.released("03_fuse_a_softmax"))


@pytest.mark.parametrize("command", [class_actions.release, class_actions.autograde])
def test_unknown_assignment_is_refused_with_the_known(classroom: Classroom, command: Callable[..., Any]) -> None:
    """A misspelt assignment gives the list of existing ones."""
    with pytest.raises(ClassroomError, match=r"no assignment '03_tritn'.*03_triton"):
        command(classroom.folder, "03_tritn")


def test_folder_that_is_no_course_is_refused(tmp_path: Path) -> None:
    """Every command says how to create a course folder."""
    for command in (
        class_actions.status,
        lambda f: class_actions.release(f, "a"),
        lambda f: class_actions.autograde(f, "a"),
    ):
        with pytest.raises(ClassroomError, match=r"not a course folder.*grader classroom init"):
            command(tmp_path)


def test_config_that_fails_is_named(classroom: Classroom) -> None:
    """A broken nbgrader_config.py gives one sentence with the error, not a traceback."""
    (classroom.folder / "nbgrader_config.py").write_text("c = get_config()\n1 / 0\n", encoding="utf-8")
    with pytest.raises(ClassroomError, match="ZeroDivisionError: division by zero"):
        class_actions.status(classroom.folder)


def test_autograde_before_release(new_course: Callable[..., Classroom], judge: ObedientJudge) -> None:
    """Grading an assignment that was never generated says which command comes first."""
    classroom = new_course()
    (classroom.folder / "source" / "04_new").mkdir()
    with pytest.raises(ClassroomError, match="no notebook in"):
        class_actions.autograde(classroom.folder, "04_new")
    source = classroom.folder / "source" / ASSIGNMENT / "01_add_vectors.ipynb"
    (classroom.folder / "source" / "04_new" / "a.ipynb").write_bytes(source.read_bytes())
    with pytest.raises(ClassroomError, match=r"grader classroom release .* 04_new"):
        class_actions.autograde(classroom.folder, "04_new")


def test_autograde_without_submissions(classroom: Classroom, judge: ObedientJudge) -> None:
    """An empty inbox is not an error."""
    result = class_actions.autograde(classroom.folder, ASSIGNMENT)
    assert (result.ok, result.students, result.feedback) == (True, (), "none")
    assert "Nobody has submitted" in result.to_text()


def test_autograde_takes_up_only_what_is_new(classroom: Classroom, judge: ObedientJudge) -> None:
    """A second run grades only new submissions, unless forced, and the result says so."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    asked = len(judge.sources)
    again = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.outcome, s.score) for s in again.students] == [("unchanged", 3)]
    assert len(judge.sources) == asked
    classroom.hand_in("ann", solve(8))
    newer = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.outcome, s.score) for s in newer.students] == [("graded", 8)]
    forced = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, force=True)
    assert [(s.outcome, s.score) for s in forced.students] == [("graded", 8)]
    assert len(judge.sources) == asked + 3, "the other notebook has a verdict; force judges both again"


def test_a_text_that_several_handed_in_is_judged_once(classroom: Classroom, judge: ObedientJudge) -> None:
    """Every student who submitted it gets the verdict, also in later runs; a forced run judges it once more."""
    for student in ("ann", "bob"):
        classroom.hand_in(student, solve(3))
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [student.score for student in result.students] == [3, 3]
    assert len(judge.sources) == 2
    classroom.hand_in("cyd", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert len(judge.sources) == 2
    assert classroom.grade("cyd") == (3, False)
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, force=True)
    assert len(judge.sources) == 4


def test_students_whose_texts_have_a_verdict_go_first(classroom: Classroom, judge: ObedientJudge) -> None:
    """A slow text holds up no other student's notebooks."""
    classroom.hand_in("bob", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    classroom.hand_in("ann", solve(4))
    classroom.hand_in("cyd", solve(3))
    told: list[str] = []
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, progress=lambda text, *_: told.append(text))
    assert told[1:] == ["grading cyd", "grading ann"]
    assert [classroom.grade(name)[0] for name in ("ann", "cyd")] == [4, 3]


def test_a_forced_grading_that_is_killed_goes_on(classroom: Classroom, judge: ObedientJudge) -> None:
    """The next run, forced or not, grades the students that are left again, and nobody twice."""
    for student, points in (("ann", 3), ("bob", 4), ("cyd", 5)):
        classroom.hand_in(student, solve(points))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    judge.sources.clear()
    judge.errors = [None, None, KeyboardInterrupt()]  # in bob's turn
    with pytest.raises(KeyboardInterrupt):
        class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, force=True)
    judge.sources.clear()
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.student, s.outcome) for s in result.students] == [
        ("ann", "unchanged"), ("bob", "graded"), ("cyd", "graded"),
    ]  # fmt: skip
    assert ["5" in source for source in judge.sources] == [False, True], "bob's and cyd's softmax, each once"
    assert "Note: went on with an interrupted --force, 2 students" in result.to_text()
    asked = len(judge.sources)
    last = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert {s.outcome for s in last.students} == {"unchanged"}
    assert len(judge.sources) == asked


def test_a_forced_grading_without_judges_has_not_begun(
    classroom: Classroom, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing GPU ends the command, and the next run without --force judges nothing again."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    asked = len(judge.sources)
    monkeypatch.setattr("grader.classroom.grading.verdict_store.gpus", tuple)
    monkeypatch.setattr("grader.classroom.grading.workers.gpus", tuple)
    with pytest.raises(ClassroomError, match="has 0 GPUs"):
        class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, force=True, gpus=(7,))
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [student.outcome for student in result.students] == ["unchanged"]
    assert len(judge.sources) == asked


def test_side_by_side_gives_the_same_grades(
    classroom: Classroom, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --jobs every student gets the grade of a run with one judge, and the store holds the verdicts."""

    class Each(ObedientJudge):
        def interrupt(self) -> None: ...

        def close(self) -> None: ...

    made: list[Each] = []

    def new(device: str, sandbox: bool) -> Each:
        made.append(Each())
        return made[-1]

    monkeypatch.setattr("grader.judge.service.Judge", new)
    with (classroom.folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write('\nc.JudgeCells.device = "simulator"\n')
    for points in range(6):
        classroom.hand_in(f"student{points}", solve(points))
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, jobs=2)
    assert [student.score for student in result.students] == [0, 1, 2, 3, 4, 5]
    assert len(made) == 2
    assert sum(len(each.sources) for each in made) == 7, "six solutions, and one stub that all handed in"
    assert judge.sources == []
    assert len(list((classroom.folder / "verdicts").rglob("*.json"))) == 7


def test_autograde_of_one_student(classroom: Classroom, judge: ObedientJudge) -> None:
    """One student can be graded alone; an unknown one is an error."""
    classroom.hand_in("ann", solve(3))
    classroom.hand_in("bob", solve(4))
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, student="bob", feedback=False)
    assert [s.student for s in result.students] == ["bob"]
    with pytest.raises(ClassroomError, match="zoe has not submitted"):
        class_actions.autograde(classroom.folder, ASSIGNMENT, student="zoe")


def _pairs(judge: ObedientJudge, turn: int) -> list[tuple[str, str]]:
    """Exercise and points of the submissions that the judge expects before a student's turn."""
    return [(exercise_id, source.partition("# points: ")[2].strip()) for source, exercise_id in judge.expected[turn]]


def test_the_judge_hears_of_all_submissions_ahead(classroom: Classroom, judge: ObedientJudge) -> None:
    """Before each student's turn the judge gets nbgrader's next requests in order, each text once."""
    classroom.hand_in("ann", solve(1))
    classroom.hand_in("bob", solve(2))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert _pairs(judge, 0) == [("vector_add", ""), ("softmax", "1"), ("softmax", "2")]
    assert _pairs(judge, 1) == [("softmax", "2")]
    assert [source for source, _ in judge.expected[0]] == judge.sources, "the texts are not those that are graded"
    classroom.hand_in("bob", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert _pairs(judge, 2) == [("softmax", "3")]
    assert len(judge.expected) == 3


def test_what_cannot_be_read_ahead_is_left_out(classroom: Classroom, judge: ObedientJudge) -> None:
    """Broken files and folders among the submissions do not affect the other students."""
    classroom.hand_in("ann", solve(1))
    classroom.hand_in("eve", solve(2)).write_text("{", encoding="utf-8")
    mal = classroom.hand_in("mal", solve(3)).parent
    (mal / "00_folder.ipynb").mkdir()
    (mal / "00_empty.ipynb").touch()
    (mal / "00_cells.ipynb").write_text('{"cells": 3}', encoding="utf-8")
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [pair for pair in _pairs(judge, 0) if pair[0] == "softmax"] == [("softmax", "1"), ("softmax", "3")]


def test_no_sandbox_is_passed_on_and_said(classroom: Classroom, judge: ObedientJudge) -> None:
    """All submissions of a run go to the requested judge; the result says that there was no sandbox."""
    classroom.hand_in("ann", solve(1))
    plain = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert judge.asked_for == {("auto", True)}
    assert "sandbox" not in plain.to_text()
    judge.asked_for.clear()
    open_door = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, force=True, sandbox=False)
    assert judge.asked_for == {("auto", False)}
    assert "Note: submissions ran without a sandbox" in open_door.to_text()


def test_the_course_may_do_without_a_sandbox(classroom: Classroom, judge: ObedientJudge) -> None:
    """The course's setting has the same effect, and its device also holds for the submissions to load ahead."""
    with (classroom.folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write('\nc.JudgeCells.sandbox = False\nc.JudgeCells.device = "simulator"\n')
    classroom.hand_in("ann", solve(1))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert judge.asked_for == {("simulator", False)}
    assert judge.expected


KILLED = """
import os, pathlib, sys
from grader.classroom import class_actions as commands
from grader.judge import service

class Deadly:
    expect = lambda self, submissions: None
    grade = lambda self, *args, **options: os._exit(9)

service.shared_judge = lambda device, sandbox: Deadly()
commands.autograde(pathlib.Path(sys.argv[1]), sys.argv[2], feedback=False)
"""


def test_what_was_cut_short_is_graded_again(classroom: Classroom, judge: ObedientJudge) -> None:
    """A killed grading leaves what nbgrader considers a graded submission, with the previous scores."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    classroom.hand_in("ann", solve(8))
    run = subprocess.run([sys.executable, "-c", KILLED, str(classroom.folder), ASSIGNMENT], cwd=PROJECT, check=False)
    assert run.returncode == 9
    assert class_actions.status(classroom.folder).assignments[0].graded == 0
    again = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.outcome, s.score) for s in again.students] == [("graded", 8)]
    assert class_actions.status(classroom.folder).assignments[0].graded == 1
    once_more = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.outcome, s.score) for s in once_more.students] == [("unchanged", 8)]


def test_an_interrupt_ends_the_run(classroom: Classroom, judge: ObedientJudge) -> None:
    """Ctrl-C is not treated as a submission's failure, and the interrupted student is graded the next time."""
    for student in ("ann", "bob"):
        classroom.hand_in(student, solve(3))
    judge.errors = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert len(judge.sources) == 1
    again = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.outcome, s.score) for s in again.students] == [("graded", 3), ("graded", 3)]


@pytest.mark.parametrize(
    "step",
    ["nbgrader.converters.GenerateFeedback.convert_notebooks", "grader.classroom.nbgrader_apps.Collect.copy_files"],
)
def test_an_interrupt_ends_the_run_elsewhere_too(
    classroom: Classroom, judge: ObedientJudge, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C also ends collecting and writing feedback."""

    classroom.hand_in("ann", solve(3))
    monkeypatch.setattr(step, _interrupted)
    with pytest.raises(KeyboardInterrupt):
        class_actions.autograde(classroom.folder, ASSIGNMENT)


def test_what_waits_is_no_reason_to_fail(tmp_path: Path, classroom: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint for a board is 0 for a folder of files, and if nbgrader fails."""
    assert class_actions.uncollected(tmp_path, ASSIGNMENT) == 0
    inbound = classroom.folder.with_name("course-exchange") / "gpu-course" / "inbound"
    (inbound / f"zoe+{ASSIGNMENT}+2026-03-01 10:00:00.000000 UTC+abc").mkdir()
    assert class_actions.uncollected(classroom.folder, ASSIGNMENT) == 1
    monkeypatch.setattr("grader.classroom.course_folder.api", lambda course: 1 / 0)
    assert class_actions.uncollected(classroom.folder, ASSIGNMENT) == 0


def test_one_unreadable_notebook_costs_only_itself(classroom: Classroom, judge: ObedientJudge) -> None:
    """nbgrader would grade none; the others are graded, the file is kept, and each run reports it."""
    broken = classroom.hand_in("ann", solve(3)).with_name("01_add_vectors.ipynb")
    broken.write_text("{", encoding="utf-8")
    for outcome in ("graded", "unchanged"):
        result = class_actions.autograde(classroom.folder, ASSIGNMENT)
        (ann,) = result.students
        assert (ann.outcome, ann.score, result.ok) == (outcome, 3, False)
        assert ann.reason.startswith(str(broken))
    assert broken.read_text(encoding="utf-8") == "{"


def test_a_run_parses_each_notebook_once(
    classroom: Classroom, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty megabytes of brackets take a second and half a gigabyte each time they are read."""
    handed_in = [classroom.hand_in(f"student{number}", solve(number)) for number in range(3)]
    handed_in[1].write_text("[" + "[]," * 1000, encoding="utf-8")
    parsed, loads = [], json.loads
    monkeypatch.setattr(file_reading.json, "loads", lambda text, **how: (parsed.append(text), loads(text, **how))[1])
    monkeypatch.setattr(file_reading, "_kept", {})
    class_actions.autograde(classroom.folder, ASSIGNMENT)
    for path in handed_in:
        assert parsed.count(path.read_text(encoding="utf-8")) == 1


def test_an_unreadable_notebook_loses_the_points_of_the_last_one(classroom: Classroom, judge: ObedientJudge) -> None:
    """The newest submission counts, even if it is worse; the student's other notebooks are graded."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    handed_in = classroom.hand_in("ann", solve(2, "vector_add"), "01_add_vectors")
    handed_in.with_name("03_fuse_a_softmax.ipynb").write_text("{", encoding="utf-8")
    (handed_in.parent / "zz.ipynb").mkdir()
    (ann,) = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).students
    assert (ann.outcome, ann.score) == ("graded", 2)
    assert classroom.grade("ann") == (0, False)
    assert "03_fuse_a_softmax.ipynb" in ann.reason
    assert "zz" not in ann.reason, "it is none of the assignment's"


def test_work_is_late_to_the_second() -> None:
    """After 41 seconds, a policy of no points for late work takes them all: "0.0 h late" would not say why."""
    late = StudentResult("ann", "graded", 0.0, 10.0, seconds_late=40.6)
    text = AutogradeResult("03_triton", 1, (late,), "none").to_text()
    assert "0 of 10    0:00:41 late" in text


def test_a_submission_without_a_notebook_has_failed(classroom: Classroom, judge: ObedientJudge) -> None:
    """The scores of the earlier submission do not count. The instructor reads what was handed in instead."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    for notebook in classroom.hand_in("ann", solve(3)).parent.glob("*.ipynb"):
        notebook.unlink()
    exchange = classroom.folder.with_name("course-exchange") / "gpu-course" / "inbound"
    entry = exchange / f"ann+{ASSIGNMENT}+2026-01-01 00:00:02.000000 UTC+x"
    entry.mkdir(parents=True)
    (entry / "another_chapter.ipynb").touch()
    (ann,) = class_actions.autograde(classroom.folder, ASSIGNMENT).students
    assert ann.outcome == "failed"
    assert ann.reason.startswith("There is no notebook in ")
    assert "Not part of the assignment: another_chapter.ipynb." in ann.to_look_at[0]


def test_a_time_that_cannot_be_read_stops_nobody(classroom: Classroom, judge: ObedientJudge) -> None:
    """nbgrader reads the times of all students to find out whom it has graded."""
    for student in ("ann", "bob"):
        classroom.hand_in(student, solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    (classroom.hand_in("ann", solve(3)).parent / "timestamp.txt").write_text("tomorrow", encoding="utf-8")
    assert class_actions.status(classroom.folder).assignments[0].graded == 1
    ann, bob = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).students
    assert (ann.outcome, bob.outcome) == ("failed", "unchanged")


def test_a_renamed_notebook_is_named(classroom: Classroom, judge: ObedientJudge) -> None:
    """nbgrader passes over it silently and gives 0 for the missing one."""
    handed_in = classroom.hand_in("ann", solve(3))
    handed_in.rename(handed_in.with_name("mine.ipynb"))
    (ann,) = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).students
    (sentence,) = ann.to_look_at
    assert ann.score == 0
    assert sentence.startswith(
        "Not submitted, so without points: 03_fuse_a_softmax.ipynb. Not part of the assignment: mine.ipynb. "
    )
    handed_in.with_name("mine.ipynb").rename(handed_in)
    (ann,) = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, force=True).students
    assert (ann.score, ann.to_look_at) == (3, ())
    handed_in.with_name("01_add_vectors.ipynb").unlink()
    (ann,) = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).students
    assert ann.to_look_at == ("Not submitted, so without points: 01_add_vectors.ipynb.",)


@pytest.mark.filterwarnings("ignore")  # nbgrader 0.9.6 misspells an argument, and leaves a file open
def test_feedback_that_cannot_be_released_stops_nobody(classroom: Classroom, judge: ObedientJudge) -> None:
    """Work that did not come through the exchange has no secret: the result says so, and the others get feedback."""
    (classroom.hand_in("ann", solve(3)).parent / "submission_secret.txt").unlink()
    classroom.hand_in("bob", solve(4))
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, release_feedback=True)
    ann, bob = result.students
    assert (ann.score, bob.score, bob.reason, result.ok, result.feedback) == (3, 4, "", False, "released")
    assert "no submission_secret.txt" in ann.reason
    assert str(classroom.folder / "feedback" / "ann" / ASSIGNMENT) in ann.reason
    assert len(list((classroom.folder.with_name("course-exchange") / "gpu-course" / "feedback").iterdir())) == 2


@pytest.mark.filterwarnings("ignore")  # nbgrader 0.9.6 misspells an argument, and leaves a file open
def test_feedback_holds_nothing_that_a_student_put_there(classroom: Classroom, judge: ObedientJudge) -> None:
    """nbgrader would publish their pages with ours; the target of a link is not changed."""
    handed_in = classroom.hand_in("ann", solve(3))
    handed_in.with_name("01_add_vectors.ipynb").unlink()
    outside = classroom.folder / "outside"
    outside.mkdir()
    (outside / "kept.txt").touch()
    for name in ("01_add_vectors.html", "03_fuse_a_softmax.html", "x.html", "data.csv"):
        handed_in.with_name(name).write_text("planted", encoding="utf-8")
    handed_in.with_name("y.html").mkdir()
    (handed_in.with_name("y.html") / "z.html").touch()
    made = classroom.folder / "feedback" / "ann" / ASSIGNMENT
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, release_feedback=True)
    assert (result.ok, result.feedback) == (True, "released")
    assert {path.name for path in made.iterdir()} == {
        *("01_add_vectors.html", "03_fuse_a_softmax.html", "timestamp.txt", "submission_secret.txt", ".shown")
    }
    pages = list((classroom.folder.with_name("course-exchange") / "gpu-course" / "feedback").iterdir())
    assert len(pages) == 2
    assert not any("planted" in page.read_text(encoding="utf-8") for page in pages)
    (made / "link").symlink_to(outside)
    (made / "timestamp.html").symlink_to(outside / "kept.txt")
    remove_all_but(made, {"timestamp.html"})
    assert list(made.iterdir()) == []
    assert (outside / "kept.txt").is_file()


@pytest.mark.parametrize("secret", ["", "secret", "0123456789abcde\n0", "0" * 301, "\udcff" * 20, "../" * 9])
def test_a_secret_that_is_guessed_or_none_is_as_if_there_was_none(
    classroom: Classroom, judge: ObedientJudge, secret: str
) -> None:
    """The secret names the pages in the exchange."""
    file = classroom.hand_in("ann", solve(3)).with_name("submission_secret.txt")
    file.write_text(secret, encoding="utf-8", errors="surrogateescape")
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, release_feedback=True)
    assert result.feedback == "written"
    assert "this work has no submission_secret.txt" in result.students[0].reason
    assert not any(classroom.folder.with_name("course-exchange").glob("gpu-course/feedback/*"))


def test_points_that_the_machine_could_not_give_are_said(classroom: Classroom, judge: ObedientJudge) -> None:
    """Without a GPU nobody gets the points for speed, which is not the learner's fault."""
    classroom.hand_in("ann", solve(3))
    assert "speed" not in class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).to_text()
    judge.lost = 2.5
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, force=True)
    assert "speed was not measured, so 1 student could not get up to 5 points; grade again" in result.to_text()
    assert result.ok


def test_manual_grade_survives_another_run(classroom: Classroom, judge: ObedientJudge) -> None:
    """Points given by hand are kept; the new automatic score is flagged, as nbgrader does."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    with classroom.gradebook() as gradebook:
        gradebook.find_grade("check-softmax", "03_fuse_a_softmax", ASSIGNMENT, "ann").manual_score = 9.0
        gradebook.db.commit()
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, force=True)
    assert (result.students[0].score, result.students[0].needs_manual_grade) == (9, True)
    assert classroom.grade("ann") == (3, True)


def test_late_work_is_penalised_as_the_config_says(classroom: Classroom, judge: ObedientJudge) -> None:
    """The hours are reported; the score is nbgrader's after its penalty."""
    from datetime import UTC, datetime

    with classroom.gradebook() as gradebook:
        gradebook.update_or_create_assignment(ASSIGNMENT, duedate=datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None))
    classroom.hand_in("ann", solve(7), when="2025-12-31 12:00:00.000000 UTC")
    classroom.hand_in("bob", solve(7), when="2026-01-01 02:00:00.000000 UTC")

    def scores(**options: Any) -> dict[str, tuple[float, float]]:
        result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, **options)
        return {s.student: (s.score, s.seconds_late) for s in result.students}

    assert scores() == {"ann": (7, 0), "bob": (7, 7200)}
    config = classroom.folder / "nbgrader_config.py"
    config.write_text(config.read_text(encoding="utf-8").replace('"none"\n', '"zero"\n'), encoding="utf-8")
    assert scores(force=True) == {"ann": (7, 0), "bob": (0, 7200)}


def test_feedback_holds_the_report_and_no_hidden_test(
    new_course: Callable[..., Classroom], judge: ObedientJudge
) -> None:
    """Feedback shows the verdict; hidden tests stay hidden, even if a learner writes such markers."""
    hidden = "visible = 1\n### BEGIN HIDDEN TESTS\nassert secret\n### END HIDDEN TESTS"
    classroom = new_course(code(hidden, "test-own", grade=True, locked=True, points=1))

    def edit(notebook: dict[str, Any]) -> None:
        solve(7.5)(notebook)
        notebook["cells"].append(code("mine = 1\n### BEGIN HIDDEN TESTS"))

    classroom.hand_in("ann", edit)
    result = class_actions.autograde(classroom.folder, ASSIGNMENT)
    assert result.feedback == "written"
    page = (classroom.folder / "feedback" / "ann" / ASSIGNMENT / "03_fuse_a_softmax.html").read_text(encoding="utf-8")
    assert "7.5" in page
    assert "visible" in page
    assert "mine" in page
    assert "secret" not in page


def test_progress_is_told_and_logged(classroom: Classroom, judge: ObedientJudge) -> None:
    """A run over many students reports each step, and keeps a log with the result, or with the reason for its end."""
    classroom.hand_in("ann", solve(3))
    classroom.hand_in("bob", solve(3))
    told: list[tuple[str, int, int]] = []
    class_actions.autograde(classroom.folder, ASSIGNMENT, progress=lambda *step: told.append(step))
    assert told == [
        ("collecting", 0, 1), ("grading ann", 0, 2), ("grading bob", 1, 2),
        ("writing feedback for ann", 0, 2), ("writing feedback for bob", 1, 2),
    ]  # fmt: skip
    (log,) = (classroom.folder / "logs").glob("*.log")
    lines = log.read_text(encoding="utf-8").splitlines()
    assert [line.partition(" ")[2] for line in lines[1:4]] == [
        "collecting (0/1)", "grading ann (0/2)", "grading bob (1/2)",
    ]  # fmt: skip
    assert f"{ASSIGNMENT}: 0 collected, 2 submissions" in lines[6]
    judge.errors = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        class_actions.autograde(classroom.folder, ASSIGNMENT, force=True)
    last = max((classroom.folder / "logs").glob("*.log"))
    assert last.read_text(encoding="utf-8").splitlines()[-1].endswith("stopped: KeyboardInterrupt")


def test_two_long_commands_do_not_run_at_once(classroom: Classroom, judge: ObedientJudge) -> None:
    """The second one, for example of `cron`, ends with a sentence and collects nothing."""
    with (
        run_log(classroom.folder, "rescore", None),
        pytest.raises(ClassroomError, match="Another command grades or rescores"),
    ):
        class_actions.autograde(classroom.folder, ASSIGNMENT)
    assert class_actions.autograde(classroom.folder, ASSIGNMENT).students == ()


def test_status_counts(classroom: Classroom, judge: ObedientJudge) -> None:
    """Status counts released, waiting, collected, graded and manually graded work."""
    inbound = classroom.folder.with_name("course-exchange") / "gpu-course" / "inbound"
    (inbound / f"zoe+{ASSIGNMENT}+2026-03-01 10:00:00.000000 UTC+abc").mkdir()
    classroom.hand_in("ann", solve(4))
    classroom.hand_in("bob", solve(float("nan")))
    (row,) = class_actions.status(classroom.folder).assignments
    assert (row.waiting, row.collected, row.graded, row.average_score) == (1, 2, 0, None)
    (inbound / f"zoe+{ASSIGNMENT}+2026-03-01 10:00:00.000000 UTC+abc").rmdir()
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    (inbound / f"zoe+{ASSIGNMENT}+2026-03-01 10:00:00.000000 UTC+abc").mkdir()
    (row,) = class_actions.status(classroom.folder).assignments
    assert (row.released, row.waiting, row.collected, row.graded, row.needs_manual_grade) == (True, 1, 2, 2, 1)
    assert (row.average_score, row.max_score) == (2, 15)
    assert "1 to grade by hand" in class_actions.status(classroom.folder).to_text()


def test_status_names_a_missing_exchange(classroom: Classroom) -> None:
    """A lost exchange is a problem with its remedy, not a crash."""
    import shutil

    shutil.rmtree(classroom.folder.with_name("course-exchange"))
    result = class_actions.status(classroom.folder)
    assert not result.ok
    assert "grader classroom init" in result.problems[0]
    assert result.assignments[0].released is False


def test_results_are_json(classroom: Classroom, judge: ObedientJudge) -> None:
    """Every answer can be dumped as JSON and read as text."""
    classroom.hand_in("ann", solve(4))
    for result in (
        class_actions.init(classroom.folder),
        class_actions.release(classroom.folder, ASSIGNMENT),
        class_actions.autograde(classroom.folder, ASSIGNMENT),
        class_actions.status(classroom.folder),
    ):
        assert json.loads(json.dumps(result.to_dict()))["ok"] is True
        assert result.to_text().strip() == result.to_text()
