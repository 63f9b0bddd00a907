"""Tests of grader.classroom.inbox: one submission that cannot be fetched costs nobody else theirs."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from grader.classroom import commands, inbox
from grader.classroom.copying import copy_submission
from grader.errors import ClassroomError, UnusableSubmission
from tests.classroom.conftest import ASSIGNMENT, Classroom, ObedientJudge, solve

WHEN, LATER = "2026-03-01 10:00:00.000000 UTC", "2026-03-02 10:00:00.123456 UTC"


@pytest.fixture
def inbound(classroom: Classroom) -> Path:
    """Where the exchange keeps what learners submit."""
    return classroom.folder.with_name("course-exchange") / "gpu-course" / "inbound"


def submit(classroom: Classroom, inbound: Path, student: str, points: float, when: str = WHEN) -> None:
    """What `nbgrader submit` leaves in the inbox."""
    before = classroom.folder / "submitted" / student / ASSIGNMENT
    kept = before.rename(inbound.parent / "kept") if before.is_dir() else None
    handed_in = classroom.hand_in(student, solve(points)).parent
    (handed_in / "timestamp.txt").write_text(when, encoding="utf-8")
    handed_in.rename(inbound / f"{student}+{ASSIGNMENT}+{when}+abc")
    if kept is not None:
        kept.rename(before)


def strays(inbound: Path) -> list[Path]:
    """What anyone may put there, and what would stop nbgrader, or make it grade a whole class as one student."""
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
    """It costs nobody anything, not even those in whose name it is."""
    found = strays(inbound)
    submit(classroom, inbound, "ann", 3)
    submit(classroom, inbound, "bob", 4)
    assert commands.status(classroom.folder).assignments[0].waiting == 2
    result = commands.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.student, s.score) for s in result.students] == [("ann", 3), ("bob", 4)]
    assert (result.collected, result.ok) == (2, True)
    assert sorted(result.warnings) == [f"{stray} is no submission: remove it" for stray in found]
    assert commands.status(classroom.folder).assignments[0].waiting == 0


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", 'a"b', "a'b", "a&b", "a\x9bb", "a\u202eb", "a\nb", "a\udcffb", r"a\x3cb"]
)
def test_a_name_that_a_page_or_a_terminal_would_obey_is_no_students(tmp_path: Path, name: str) -> None:
    """Formgrader writes it into a script and into the page as it stands."""
    entry = tmp_path / f"{name}+{ASSIGNMENT}+{WHEN}+ab"
    entry.mkdir()
    assert inbox.entry_of(entry) is None


@pytest.mark.parametrize("name", ["ann", "ann.b", "Zoë Müller", "ann_b-c@example.org", "王伟", "2026-ab"])
def test_names_as_people_have_them_are(tmp_path: Path, name: str) -> None:
    """Of any language."""
    entry = tmp_path / f"{name}+{ASSIGNMENT}+{WHEN}+ab"
    entry.mkdir()
    found = inbox.entry_of(entry)
    assert found is not None
    assert found.student == name


def test_what_is_no_submission_alone(classroom: Classroom, inbound: Path, judge: ObedientJudge) -> None:
    """Nothing else is there: nobody has submitted, and it is named all the same."""
    (inbound / f"eve+{ASSIGNMENT}+tomorrow").mkdir()
    text = commands.autograde(classroom.folder, ASSIGNMENT).to_text()
    assert "Nobody has submitted" in text
    assert "Note: " in text
    assert "tomorrow is no submission" in text


@pytest.mark.parametrize("what", ["link to a file", "link to a folder", "fifo", "too large", "too deep", "too many"])
def test_a_submission_that_is_more_than_plain_files_is_refused(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, what: str
) -> None:
    """A link to the solutions would be read with the instructor's rights; the one before it stays, and others count."""
    submit(classroom, inbound, "eve", 2)
    submit(classroom, inbound, "bob", 4)
    commands.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    submit(classroom, inbound, "eve", 9, LATER)
    folder = inbound / f"eve+{ASSIGNMENT}+{LATER}+abc"
    source = classroom.folder / "source" / ASSIGNMENT
    if what == "link to a file":
        (folder / "03_fuse_a_softmax.ipynb").unlink()
        (folder / "03_fuse_a_softmax.ipynb").symlink_to(source / "03_fuse_a_softmax.ipynb")
    elif what == "link to a folder":
        (folder / "data").symlink_to(source)
    elif what == "fifo":
        os.mkfifo(folder / "data")
    elif what == "too large":
        with (folder / "data").open("wb") as file:
            file.truncate(200_000_000)
    elif what == "too many":
        for number in range(200):
            (folder / f"{number}.txt").touch()
    else:
        folder.joinpath(*["d"] * 30).mkdir(parents=True)
    result = commands.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.student, s.score) for s in result.students] == [("bob", 4), ("eve", 2)]
    (warning,) = result.warnings
    assert warning.startswith(f"what eve submitted cannot be collected from {folder}: ")
    submitted = classroom.folder / "submitted" / "eve"
    assert [path.name for path in submitted.iterdir()] == [ASSIGNMENT], "something is left of the copy"


def test_another_users_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a hard link is."""
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
        copy_submission(tmp_path / "a", tmp_path / "b", WHEN, shutil.ignore_patterns(), 1000)
    monkeypatch.undo()
    assert seen
    assert not (tmp_path / "b").exists()


def test_a_pipe_in_the_place_of_a_file_does_not_hold_the_copy_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come there after the file was looked at."""
    folder = tmp_path / "a"
    folder.mkdir()
    os.mkfifo(folder / "x.ipynb")
    regular = os.stat(__file__)
    real = os.stat
    monkeypatch.setattr(
        "grader.classroom.copying.os.stat", lambda path, **how: regular if path == "x.ipynb" else real(path, **how)
    )
    with pytest.raises(UnusableSubmission, match=r"x\.ipynb"):
        copy_submission(folder, tmp_path / "b", WHEN, shutil.ignore_patterns(), 1000)


def test_the_copy_is_whole(tmp_path: Path) -> None:
    """Folders, modes that forbid us nothing, and the time by which the inbox knows it, whatever the file says."""
    source = tmp_path / "a"
    (source / "data" / "more").mkdir(parents=True)
    (source / "data" / "more" / "x.csv").write_text("1", encoding="utf-8")
    (source / ".ipynb_checkpoints").mkdir()
    (source / "timestamp.txt").write_text("tomorrow", encoding="utf-8")
    source.chmod(0o555)
    copy_submission(source, tmp_path / "b", WHEN, shutil.ignore_patterns(".ipynb_checkpoints"), 1000)
    made = {path.relative_to(tmp_path / "b").as_posix(): path for path in (tmp_path / "b").rglob("*")}
    assert set(made) == {"data", "data/more", "data/more/x.csv", "timestamp.txt"}
    assert made["data/more/x.csv"].read_text(encoding="utf-8") == "1"
    assert made["timestamp.txt"].read_text(encoding="utf-8") == WHEN
    assert (tmp_path / "b").stat().st_mode & 0o700 == 0o700


def test_what_a_browser_would_run_is_not_collected(classroom: Classroom, inbound: Path, judge: ObedientJudge) -> None:
    """Formgrader shows what was handed in, and feedback publishes pages."""
    submit(classroom, inbound, "ann", 3)
    (folder,) = inbound.glob("ann+*")
    (folder / "data").mkdir()
    (folder / "page.html").mkdir()
    for name in ("a.html", "b.SVG", "c.Js", ".htm", "data/d.pdf", "page.html/e.txt", "data/kept.csv", "kept.py"):
        (folder / name).touch()
    commands.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    submitted = classroom.folder / "submitted" / "ann" / ASSIGNMENT
    found = {path.relative_to(submitted).as_posix() for path in submitted.rglob("*") if path.suffix != ".ipynb"}
    assert found == {"data", "data/kept.csv", "kept.py", "timestamp.txt", "submission_secret.txt"}


@pytest.mark.parametrize("name", ["\x1b]0;x\x07\n  bob  10 of 10.ipynb", "a\udcff.ipynb", "03_fuse_a_softmax.ipynb"])
def test_a_files_name_forges_nothing_in_what_is_said(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, name: str
) -> None:
    """Neither a student's line, nor an escape, nor what cannot be printed."""
    folder = inbound / f"eve+{ASSIGNMENT}+{WHEN}+abc"
    folder.mkdir()
    (folder / name).write_text("{", encoding="utf-8")
    text = commands.autograde(classroom.folder, ASSIGNMENT, feedback=False).to_text()
    assert text.replace("\n", "").isprintable()
    assert sum(line.startswith("  ") and not line.startswith("    ") for line in text.splitlines()) == 1
    assert "not valid JSON" in text


@pytest.mark.parametrize(
    ("owners", "told"),
    [
        ({"ann": "ann", "bob": "ann"}, ["bob's name and was put there by ann"]),
        ({"ann": "ann", "bob": "eve"}, ["bob's name and was put there by eve"]),
        ({"ann": "jovyan", "bob": "jovyan"}, []),
        ({"ann": "jovyan"}, []),
        ({"ann": "u1", "bob": "u2"}, []),
        ({"ann": "", "bob": ""}, []),
    ],
)
def test_a_submission_in_anothers_name_is_named(
    owners: dict[str, str], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where learners are users of the machine; else nobody is accused. An empty name is oneself."""
    monkeypatch.setattr(inbox, "_name", lambda entry: owners[entry.student])
    uids = {owner: 1000 + number for number, owner in enumerate(dict.fromkeys(owners.values()))}
    when = datetime(2026, 3, 1)
    entries = [inbox.Entry(Path(student), student, when, WHEN, uids[owner]) for student, owner in owners.items()]
    said = inbox.in_anothers_name(entries)
    assert len(said) == len(told)
    assert all(part in sentence for part, sentence in zip(told, said, strict=True))


def test_who_checks_no_owners_is_told_of_none(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nbgrader's own setting holds."""
    monkeypatch.setattr(inbox, "_name", lambda entry: "ann")
    for student in ("ann", "bob"):
        submit(classroom, inbound, student, 3)
    (warning,) = commands.autograde(classroom.folder, ASSIGNMENT, feedback=False).warnings
    assert "bob's name" in warning
    with (classroom.folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write("\nc.ExchangeCollect.check_owner = False\n")
    assert commands.autograde(classroom.folder, ASSIGNMENT, feedback=False).warnings == ()


def test_an_inbox_that_cannot_be_collected_at_all(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is the machine: the run ends, with nbgrader's own words."""
    submit(classroom, inbound, "ann", 3)
    monkeypatch.setattr("nbgrader.exchange.default.collect.check_mode", lambda *args, **options: False)
    with pytest.raises(ClassroomError, match="cannot be collected: You don't have read permissions"):
        commands.autograde(classroom.folder, ASSIGNMENT)
