"""Tests of grader.classroom.inbox: one bad submission does not affect the others."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.exchange.abc import ExchangeCollect

from grader.classroom import class_actions, course_folder, inbox
from grader.classroom.copying import copy_submission
from grader.classroom.term.due_dates import counted, extend
from grader.errors import ClassroomError, UnusableSubmission
from grader.leaderboard.board_run import Deadline
from tests.classroom.conftest import ASSIGNMENT, Classroom, ObedientJudge, solve
from tests.pace import PACE

WHEN, LATER = "2026-03-01 10:00:00.000000 UTC", "2026-03-02 10:00:00.123456 UTC"


@pytest.fixture
def inbound(classroom: Classroom) -> Path:
    """The exchange's inbox."""
    return classroom.folder.with_name("course-exchange") / "gpu-course" / "inbound"


def submit(classroom: Classroom, inbound: Path, student: str, points: float, when: str = WHEN) -> None:
    """Write a submission as `nbgrader submit` does."""
    before = classroom.folder / "submitted" / student / ASSIGNMENT
    kept = before.rename(inbound.parent / "kept") if before.is_dir() else None
    handed_in = classroom.hand_in(student, solve(points)).parent
    (handed_in / "timestamp.txt").write_text(when, encoding="utf-8")
    handed_in.rename(inbound / f"{student}+{ASSIGNMENT}+{when}+abc")
    if kept is not None:
        kept.rename(before)


def strays(inbound: Path) -> list[Path]:
    """Entries that anyone can create, and that stop nbgrader or make it grade a whole class as one student."""
    (inbound / f"ann+{ASSIGNMENT}+tomorrow").mkdir()
    (inbound / f"ann+{ASSIGNMENT}+2026-99-99 10:00:00 UTC+x").mkdir()
    (inbound / f"*+{ASSIGNMENT}+{WHEN}+x").mkdir()
    (inbound / f"a[n]n+{ASSIGNMENT}+{WHEN}+x").mkdir()
    (inbound / f"zoe+{ASSIGNMENT}+{WHEN}+file").touch()
    (inbound / f"zoe+{ASSIGNMENT}+{WHEN}+link").symlink_to(inbound.parents[2] / "course" / "source" / ASSIGNMENT)
    (inbound / f"zoe+{ASSIGNMENT}+{WHEN}+dangling").symlink_to("nowhere")
    os.mkfifo(inbound / f"zoe+{ASSIGNMENT}+{WHEN}+fifo")
    return sorted(inbound.iterdir())


def test_what_is_no_submission_is_named_and_passed_over(
    classroom: Classroom, inbound: Path, judge: ObedientJudge
) -> None:
    """Bad entries affect nobody, not even the students in whose names they are."""
    found = strays(inbound)
    submit(classroom, inbound, "ann", 3)
    submit(classroom, inbound, "bob", 4)
    assert class_actions.status(classroom.folder).assignments[0].waiting == 2
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.student, s.score) for s in result.students] == [("ann", 3), ("bob", 4)]
    assert (result.collected, result.ok) == (2, True)
    assert sorted(result.warnings) == [f"{stray} is not a submission: remove it" for stray in found]
    assert class_actions.status(classroom.folder).assignments[0].waiting == 0


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", 'a"b', "a'b", "a&b", "a\x9bb", "a\u202eb", "a\nb", "a\udcffb", r"a\x3cb"]
)
def test_a_name_that_a_page_or_a_terminal_would_obey_is_no_students(tmp_path: Path, name: str) -> None:
    """Formgrader writes the name into a script and into the page unescaped."""
    entry = tmp_path / f"{name}+{ASSIGNMENT}+{WHEN}+ab"
    entry.mkdir()
    assert inbox.entry_of(entry) is None


def test_what_is_no_submission_alone(classroom: Classroom, inbound: Path, judge: ObedientJudge) -> None:
    """An inbox with nothing else in it: nobody has submitted, but the entry is reported."""
    (inbound / f"eve+{ASSIGNMENT}+tomorrow").mkdir()
    text = class_actions.autograde(classroom.folder, ASSIGNMENT).to_text()
    assert "Nobody has submitted" in text
    assert "Note: " in text
    assert "tomorrow is not a submission" in text


@pytest.mark.parametrize("what", ["link", "fifo", "folder", "too large"])
def test_a_notebook_that_is_no_plain_file_is_refused(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, what: str
) -> None:
    """A link to the solutions would be read with the instructor's rights. The earlier work is kept."""
    submit(classroom, inbound, "eve", 2)
    submit(classroom, inbound, "bob", 4)
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    submit(classroom, inbound, "eve", 9, LATER)
    folder = inbound / f"eve+{ASSIGNMENT}+{LATER}+abc"
    notebook = folder / "03_fuse_a_softmax.ipynb"
    notebook.unlink()
    if what == "link":
        notebook.symlink_to(classroom.folder / "source" / ASSIGNMENT / notebook.name)
    elif what == "fifo":
        os.mkfifo(notebook)
    elif what == "folder":
        notebook.mkdir()
    else:
        with notebook.open("wb") as file:
            file.truncate(200_000_000)
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.student, s.score) for s in result.students] == [("bob", 4), ("eve", 2)]
    (warning,) = result.warnings
    assert warning.startswith(f"the submission of eve at {folder} cannot be collected: ")
    assert ("ask the student to clear the outputs" in warning) == (what == "too large")
    submitted = classroom.folder / "submitted" / "eve"
    assert [path.name for path in submitted.iterdir()] == [ASSIGNMENT], "something is left of the copy"


def test_another_users_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hard link has another owner."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.ipynb").touch()
    of_the_folder = os.stat(tmp_path / "a")
    seen: list[os.stat_result] = []

    def fstat(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        seen.append(found)
        changed = [*found]
        changed[4] += found.st_ino != of_the_folder.st_ino
        return os.stat_result(changed)

    real = os.fstat
    monkeypatch.setattr("grader.classroom.copying.os.fstat", fstat)
    with pytest.raises(UnusableSubmission, match=r"x\.ipynb"):
        copy_submission(tmp_path / "a", tmp_path / "b", WHEN, {"x.ipynb"}, 1000)
    monkeypatch.undo()
    assert seen
    assert not (tmp_path / "b").exists()


def test_a_pipe_in_the_place_of_a_file_does_not_hold_the_copy_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link may replace a file that was already checked."""
    folder = tmp_path / "a"
    folder.mkdir()
    os.mkfifo(folder / "x.ipynb")
    regular = os.stat(__file__)
    real = os.stat
    monkeypatch.setattr(
        "grader.classroom.copying.os.stat", lambda path, **how: regular if path == "x.ipynb" else real(path, **how)
    )
    with pytest.raises(UnusableSubmission, match=r"x\.ipynb"):
        copy_submission(folder, tmp_path / "b", WHEN, {"x.ipynb"}, 1000)


def test_the_copy_holds_what_is_wanted_and_nothing_else(tmp_path: Path) -> None:
    """The time in the entry's name counts, whatever the file says; other files are reported."""
    source = tmp_path / "a"
    (source / "data" / "x.ipynb").mkdir(parents=True)
    for name in ("x.ipynb", "X.IPYNB", "x.ipynb.html", "timestamp.txt"):
        (source / name).write_text("tomorrow", encoding="utf-8")
    (source / "y.ipynb").symlink_to("/etc/passwd")
    source.chmod(0o555)
    left = copy_submission(source, tmp_path / "b", WHEN, {"x.ipynb", "z.ipynb"}, 1000)
    assert left == ["X.IPYNB", "data", "x.ipynb.html", "y.ipynb"]
    assert {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "b").rglob("*")} == {
        "x.ipynb": "tomorrow",
        "timestamp.txt": WHEN,
    }
    assert (tmp_path / "b").stat().st_mode & 0o700 == 0o700


def test_only_the_assignments_own_notebooks_are_collected(
    classroom: Classroom, inbound: Path, judge: ObedientJudge
) -> None:
    """A browser runs many kinds of files. The others are reported, with a notebook that may have been renamed.

    The files that were handed out with the notebooks come back with them, and are not reported.
    """
    submit(classroom, inbound, "ann", 3)
    (folder,) = inbound.glob("ann+*")
    (classroom.folder / "release" / ASSIGNMENT / "glossary.md").touch()
    (folder / "glossary.md").touch()
    (folder / "data").mkdir()
    (folder / ".ipynb_checkpoints").mkdir()
    for name in ("a.html", "b.xpdl", "c.rdf", "d.wsdl", "data/e.svg", "notebook.py", "other.ipynb", "g.png"):
        (folder / name).touch()
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    for step in ("submitted", "autograded"):
        made = classroom.folder / step / "ann" / ASSIGNMENT
        found = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
        own = {"01_add_vectors.ipynb", "03_fuse_a_softmax.ipynb"}
        assert found == {*own, "timestamp.txt", "submission_secret.txt"}, step
    (warning,) = result.warnings
    assert warning.startswith("ann also submitted a.html, b.xpdl, c.rdf, d.wsdl, data and 3 more; only ")


def test_a_renamed_notebook_is_named_whenever_the_class_is_graded(
    classroom: Classroom, inbound: Path, judge: ObedientJudge
) -> None:
    """It stays in the exchange, and its student gets no points for it."""
    submit(classroom, inbound, "ann", 3)
    (folder,) = inbound.glob("ann+*")
    (folder / "03_fuse_a_softmax.ipynb").rename(folder / "softmax_final.ipynb")
    for _ in range(2):
        text = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).to_text()
        assert "softmax_final.ipynb" in text


@pytest.mark.parametrize("by", ["grader classroom autograde", "Formgrader's button"])
def test_what_came_another_way_is_not_kept_beside_the_graded_notebooks(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, by: str
) -> None:
    """Formgrader serves the files there to the instructor's browser."""
    submit(classroom, inbound, "ann", 3)
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    (classroom.folder / "submitted" / "ann" / ASSIGNMENT / "page.xpdl").write_text("<x/>", encoding="utf-8")
    if by == "Formgrader's button":
        course_folder.must(course_folder.api(classroom.folder).autograde(ASSIGNMENT, "ann", force=True), by)
    else:
        class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, force=True)
    made = classroom.folder / "autograded" / "ann" / ASSIGNMENT
    assert not (made / "page.xpdl").exists()
    assert (made / "03_fuse_a_softmax.ipynb").exists()


@pytest.mark.parametrize("name", ["\x1b]0;x\x07\n  bob  10 of 10.ipynb", "a\udcff.ipynb", "03_fuse_a_softmax.ipynb"])
def test_a_files_name_forges_nothing_in_what_is_said(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, name: str
) -> None:
    """It can forge neither a student's line nor an escape sequence."""
    folder = inbound / f"eve+{ASSIGNMENT}+{WHEN}+abc"
    folder.mkdir()
    (folder / name).write_text("{", encoding="utf-8")
    text = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).to_text()
    assert text.replace("\n", "").isprintable()
    assert sum(line.startswith("  ") and not line.startswith("    ") for line in text.splitlines()) == 1
    assert ("not valid JSON" if name.startswith("03") else "also submitted") in text


def stamp(minutes: float = 0) -> str:
    """The time so many minutes ago, as `nbgrader submit` writes it."""
    return f"{datetime.now(UTC) - timedelta(minutes=minutes):%Y-%m-%d %H:%M:%S.%f} UTC"


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the owner of an entry from the end of its name; `me` is the current user."""
    monkeypatch.setattr(inbox, "_name", lambda entry: entry.path.name.rpartition("+")[2].removesuffix("me"))


def submit_as(
    classroom: Classroom, inbound: Path, student: str, points: float, minutes: float = 0, by: str | None = None
) -> Path:
    """An entry in a student's name that a user created just now, whatever time it claims."""
    when = stamp(minutes)
    submit(classroom, inbound, student, points, when)
    name = f"{student}+{ASSIGNMENT}+{when}+"
    return (inbound / f"{name}abc").rename(inbound / f"{name}{student if by is None else by}")


def graded(classroom: Classroom, **options: Any) -> tuple[dict[str, float], tuple[str, ...]]:
    """Every student's score, and the warnings."""
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, **options)
    return {student.student: student.score for student in result.students}, result.warnings


def test_what_is_in_anothers_name_waits_until_it_is_accepted(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None
) -> None:
    """It neither counts nor replaces bob's own work, and the message says how to accept it."""
    submit_as(classroom, inbound, "ann", 3, 3)
    submit_as(classroom, inbound, "bob", 4, 3)
    submit_as(classroom, inbound, "bob", 1, 2, by="eve")
    assert class_actions.status(classroom.folder).assignments[0].waiting == 2
    for _ in range(2):
        scores, (warning,) = graded(classroom)
        assert scores == {"ann": 3, "bob": 4}
        assert "is in bob's name but was put there by eve, so it was not collected" in warning
        assert "--accept bob" in warning
        assert class_actions.status(classroom.folder).assignments[0].waiting == 0
    assert graded(classroom, accept=["bob"])[0] == {"ann": 3, "bob": 1}
    scores, (warning,) = graded(classroom)
    assert scores == {"ann": 3, "bob": 1}
    assert "and is already collected: ask both" in warning


@pytest.mark.parametrize(
    ("owners", "left"),
    [
        ({"ann": "ann", "bob": "ann"}, {"bob"}),
        ({"ann": "ann", "bob": "eve"}, {"bob"}),
        ({"ann": "bob", "bob": "ann"}, {"ann", "bob"}),
        ({"root": "daemon"}, {"root"}),  # the only one there is, and root is a user of this machine
        ({"ann": "jovyan", "bob": "jovyan"}, set()),
        ({"ann": "jovyan"}, set()),
        ({"ann": "u1", "bob": "u2"}, set()),
        ({"ann": "me", "bob": "me"}, set()),
    ],
)
def test_whose_name_it_is_is_asked_where_learners_are_users(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None, owners: dict[str, str], left: set[str]
) -> None:
    """Otherwise nobody is accused: a service submits for all."""
    for student, owner in owners.items():
        submit_as(classroom, inbound, student, 3, by=owner)
    scores, warnings = graded(classroom)
    assert set(scores) == set(owners) - left
    assert len(warnings) == len(left)


def test_a_student_of_the_gradebook_hands_in_for_nobody_else(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None
) -> None:
    """This holds even if neither of them has submitted anything."""
    with classroom.gradebook() as gradebook:
        gradebook.add_student("eve")
    submit_as(classroom, inbound, "bob", 3, by="eve")
    scores, (warning,) = graded(classroom)
    assert scores == {}
    assert "put there by eve" in warning


def test_who_checks_no_owners_is_told_of_none(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None
) -> None:
    """nbgrader's own setting applies to names and times."""
    submit_as(classroom, inbound, "ann", 3, 60)
    submit_as(classroom, inbound, "bob", 3, by="ann")
    with (classroom.folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write("\nc.ExchangeCollect.check_owner = False\n")
    assert class_actions.status(classroom.folder).assignments[0].waiting == 2
    assert graded(classroom) == ({"ann": 3, "bob": 3}, ())


def late(classroom: Classroom, **options: Any) -> dict[str, float]:
    """The minutes that each student is late."""
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, **options)
    return {student.student: round(student.seconds_late / 60, 1) for student in result.students}


def due(classroom: Classroom, minutes: float) -> None:
    """Set the due date to so many minutes ago."""
    with classroom.gradebook() as gradebook:
        when = (datetime.now(UTC) - timedelta(minutes=minutes)).replace(tzinfo=None)
        gradebook.update_or_create_assignment(ASSIGNMENT, duedate=when)


def test_a_time_before_the_folders_own_is_not_believed(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None
) -> None:
    """An entry created after the due date is late whatever it claims, with a tolerance for submitting."""
    due(classroom, 30)
    submit_as(classroom, inbound, "ann", 3, 60)
    submit_as(classroom, inbound, "bob", 4, 2)
    (warning,) = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).warnings
    assert str(inbound / "ann+") in warning
    assert "which counts" in warning
    assert "--accept ann" in warning
    times = late(classroom)
    assert 30 <= times["ann"] < 60
    assert 28 <= times["bob"] < 30
    assert class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).warnings == (), "it was said once"
    assert late(classroom, accept=["ann"])["ann"] == 0
    assert late(classroom)["ann"] == 0, "what was accepted stays so"


def test_a_board_counts_the_last_work_on_time(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late work replaces it in the gradebook only; work that was backdated after collecting does not count."""
    assert counted(classroom.folder, ASSIGNMENT) == Deadline()
    due(classroom, 30)
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "changed_ns", lambda folder: 0)
        patch.setattr("grader.classroom.nbgrader_apps.changed_ns", lambda folder: 0)
        submit_as(classroom, inbound, "ann", 1, 70)
        on_time = submit_as(classroom, inbound, "ann", 3, 60)
        for student in ("ann", "bob", "cid"):
            submit_as(classroom, inbound, student, 4, 20)
        submit_as(classroom, inbound, "dan", 4, 40)
        late(classroom)
        extend(classroom.folder, ASSIGNMENT, "cid", 1)
        assert counted(classroom.folder, ASSIGNMENT).late == {"ann": on_time, "bob": None}
    submit_as(classroom, inbound, "bob", 5, 60)
    assert counted(classroom.folder, ASSIGNMENT).late["bob"] is None


def test_the_newest_by_the_folders_own_time_counts(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None
) -> None:
    """A slow clock, or a false time, does not make older work the newest."""
    submit_as(classroom, inbound, "ann", 3, 1)
    submit_as(classroom, inbound, "ann", 4, 60)
    scores, (warning,) = graded(classroom)
    assert scores == {"ann": 4}
    assert "which counts" in warning


def test_a_copied_exchange_makes_no_collected_work_late(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copying does not make an older submission the newest either; one message lists the changed folders."""
    due(classroom, 30)
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "changed_ns", lambda folder: 0)
        patch.setattr("grader.classroom.nbgrader_apps.changed_ns", lambda folder: 0)
        for student in ("ann", "bob"):
            submit_as(classroom, inbound, student, 1, 70)
            submit_as(classroom, inbound, student, 3, 60)
        assert graded(classroom) == ({"ann": 3, "bob": 3}, ())
    scores, (warning,) = graded(classroom)
    assert scores == {"ann": 3, "bob": 3}
    assert late(classroom) == {"ann": 0, "bob": 0}
    assert "as after copying an exchange" in warning
    assert class_actions.status(classroom.folder).assignments[0].waiting == 0


def test_a_notebook_that_is_changed_in_its_place_is_as_new_as_the_change(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing to a file in a folder does not change the folder's own time."""
    entry = submit_as(classroom, inbound, "ann", 3)
    before = inbox.changed_ns(entry)
    assert before is not None
    folder = entry.stat()
    deadline = time.monotonic() + 30 * PACE
    while inbox.changed_ns(entry) == before and time.monotonic() < deadline:
        with (entry / "03_fuse_a_softmax.ipynb").open("a", encoding="utf-8") as file:
            file.write(" ")
        os.utime(entry / "03_fuse_a_softmax.ipynb", (0, 0))
    assert inbox.changed_ns(entry) > before  # type: ignore[operator]
    assert entry.stat().st_ctime_ns == folder.st_ctime_ns


def test_what_changes_while_it_is_collected_waits(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a file could be exchanged between checking its time and copying it; the next run collects it."""
    submit(classroom, inbound, "ann", 3)
    with monkeypatch.context() as patch:
        patch.setattr("grader.classroom.nbgrader_apps.changed_ns", lambda folder: 1)
        scores, (warning,) = graded(classroom)
    assert scores == {}
    assert "it changed while it was copied" in warning
    assert graded(classroom) == ({"ann": 3}, ())


def test_an_entry_of_files_without_end_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading their times must not take hours."""
    monkeypatch.setattr(inbox, "_MOST_FILES", 10)
    entry = tmp_path / f"ann+{ASSIGNMENT}+{WHEN}+ab"
    entry.mkdir()
    for number in range(11):
        (entry / str(number)).touch()
    assert inbox.entry_of(entry) is None


def test_a_name_to_accept_that_is_not_there_is_told(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None
) -> None:
    """A misspelt name would otherwise accept nothing without a message."""
    submit_as(classroom, inbound, "ann", 3)
    assert graded(classroom, accept=["anne"]) == ({"ann": 3}, ("there is no entry in anne's name to accept",))


LOOKS_LIKE_ANN = "\u0430nn"


def test_a_name_that_looks_like_anothers_waits_until_it_is_accepted(
    classroom: Classroom, inbound: Path, judge: ObedientJudge
) -> None:
    """Both names are reported with their spelling; the newer, unknown one is not collected."""
    submit(classroom, inbound, "paco", 3)
    submit(classroom, inbound, "\u0440\u0430\u0441\u043e", 4, LATER)
    submit(classroom, inbound, "Paco", 2, LATER)
    scores, warnings = graded(classroom)
    assert scores == {"paco": 3}
    cyrillic, capital = sorted(warnings, reverse=True)
    assert "looks like paco" in cyrillic
    assert r"(spelled \u0440\u0430\u0441\u043e+" in cyrillic
    assert "Paco looks like paco" in capital
    assert class_actions.status(classroom.folder).assignments[0].waiting == 0
    scores, warnings = graded(classroom, accept=["\u0440\u0430\u0441\u043e"])
    assert scores == {"paco": 3, "\u0440\u0430\u0441\u043e": 4}
    assert len(warnings) == 1


def test_a_name_of_the_gradebook_is_the_one_that_counts(
    classroom: Classroom, inbound: Path, judge: ObedientJudge
) -> None:
    """This holds even if the known student submits later, or never."""
    with classroom.gradebook() as gradebook:
        gradebook.add_student("alice")
    submit(classroom, inbound, "a1ice", 4)
    assert graded(classroom)[0] == {}
    submit(classroom, inbound, "alice", 3, LATER)
    assert graded(classroom)[0] == {"alice": 3}


def test_a_user_of_the_machine_is_who_the_name_says(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, users: None
) -> None:
    """However similar two names are, each is in its owner's name."""
    submit_as(classroom, inbound, "ian", 3)
    submit_as(classroom, inbound, "Ian", 4)
    assert graded(classroom) == ({"ian": 3, "Ian": 4}, ())


def test_what_is_no_name_is_spelled(classroom: Classroom, inbound: Path, judge: ObedientJudge) -> None:
    """An instructor sees why the entry is not valid."""
    submit(classroom, inbound, LOOKS_LIKE_ANN, 3)
    submit(classroom, inbound, "a\u3164n", 3)
    scores, warnings = graded(classroom)
    assert scores == {}
    assert sum(rf"(spelled {spelling}+" in w for w in warnings for spelling in (r"\u0430nn", r"a\u3164n")) == 2


def test_an_inbox_that_cannot_be_collected_at_all(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine is at fault, so the run ends with nbgrader's own message."""
    submit(classroom, inbound, "ann", 3)
    monkeypatch.setattr("nbgrader.exchange.default.collect.check_mode", lambda *args, **options: False)
    with pytest.raises(ClassroomError, match="cannot be collected: You don't have read permissions"):
        class_actions.autograde(classroom.folder, ASSIGNMENT)


def test_another_kind_of_exchange_collects_by_itself(classroom: Classroom, judge: ObedientJudge) -> None:
    """A service such as ngshare has no folder: its own collector is called, and no folder is missed."""
    handed_in = classroom.hand_in("ann", solve(3)).parent
    config = classroom.folder / "nbgrader_config.py"
    with config.open("a", encoding="utf-8") as file:
        file.write(f"\nc.ExchangeFactory.collect = {Service.__module__ + '.Service'!r}\nc.Exchange.root = '/nowhere'\n")
    Service.source = handed_in.rename(classroom.folder / "kept by the service")
    result = class_actions.autograde(classroom.folder, ASSIGNMENT)
    assert (result.collected, [each.student for each in result.students]) == (1, ["ann"])
    assert not [warning for warning in result.warnings if "exchange" in warning]


class Service(ExchangeCollect):
    """Collects from a service."""

    source: Path

    def start(self) -> None:
        dest = Path(self.coursedir.format_path("submitted", "ann", self.coursedir.assignment_id))
        shutil.copytree(self.source, dest)
