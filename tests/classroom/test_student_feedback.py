"""Tests of grader.classroom.student_feedback: each notebook of the assignment has a page, even an unreadable one."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat import v4
from nbgrader.apps import NbGraderAPI
from nbgrader.utils import notebook_hash

from grader.classroom import class_actions
from grader.classroom.settings import load
from grader.classroom.student_feedback import write_all, write_feedback
from grader.feedback.report import page_without_grades
from grader.leaderboard.ranking import assign
from grader.leaderboard.store import Store
from tests.classroom.conftest import ASSIGNMENT, Classroom, ObedientJudge, solve

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader 0.9.6 misspells an argument, and leaves a file open

OWN = ("01_add_vectors", "03_fuse_a_softmax")


def page(classroom: Classroom, student: str, notebook: str) -> str:
    """The pages in the student's folder and, under nbgrader's name for them, in the exchange."""
    made = classroom.folder / "feedback" / student / ASSIGNMENT
    text = (made / f"{notebook}.html").read_text(encoding="utf-8")
    secret = (made / "submission_secret.txt").read_text(encoding="utf-8")
    name = f"{notebook_hash(secret=secret, notebook_id=notebook)}.html"
    released = classroom.folder.with_name("course-exchange") / "gpu-course" / "feedback" / name
    assert released.read_text(encoding="utf-8") == text
    return text


def test_a_notebook_that_cannot_be_read_has_a_page_that_says_why(classroom: Classroom, judge: ObedientJudge) -> None:
    """The page joins those of the graded notebooks; once the notebook can be read, its page is the usual one."""
    broken = classroom.hand_in("ann", solve(3)).with_name("01_add_vectors.ipynb")
    before = broken.read_text(encoding="utf-8")
    for force in (False, False, True):
        broken.write_text("{", encoding="utf-8")
        result = class_actions.autograde(classroom.folder, ASSIGNMENT, force=force, release_feedback=True)
        assert result.feedback == "released"
        assert "01_add_vectors.ipynb is not a notebook: it is not valid JSON" in page(classroom, "ann", OWN[0])
        assert "points" in page(classroom, "ann", OWN[1])
        assert str(classroom.folder) not in page(classroom, "ann", OWN[0])
    broken.write_text(before, encoding="utf-8")
    class_actions.autograde(classroom.folder, ASSIGNMENT, force=True, release_feedback=True)
    assert "not a notebook" not in page(classroom, "ann", OWN[0])


def test_work_of_which_nothing_can_be_read_has_pages(classroom: Classroom, judge: ObedientJudge) -> None:
    """nbgrader makes no feedback if it has graded nothing; pages of an earlier submission are removed."""
    classroom.hand_in("ann", solve(3))
    classroom.hand_in("bob", solve(4))
    class_actions.autograde(classroom.folder, ASSIGNMENT)
    handed_in = classroom.hand_in("ann", solve(3))
    handed_in.write_bytes(b"\xff\xfe{")
    handed_in.with_name("01_add_vectors.ipynb").unlink()
    handed_in.with_name("x.html").write_text("planted", encoding="utf-8")
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, release_feedback=True)
    assert [(each.student, each.outcome) for each in result.students] == [("ann", "failed"), ("bob", "unchanged")]
    assert "Your submission had no <code>01_add_vectors.ipynb</code>." in page(classroom, "ann", OWN[0])
    assert "03_fuse_a_softmax.ipynb is UTF-16 text: " in page(classroom, "ann", OWN[1])
    assert not (classroom.folder / "feedback" / "ann" / ASSIGNMENT / "x.html").exists()
    assert "points" in page(classroom, "bob", OWN[1])


def test_feedback_is_read_without_a_network(classroom: Classroom, judge: ObedientJudge) -> None:
    """Formulas are MathML, and nothing is loaded: a learner may be on a train, and a browser may block other hosts."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT)
    graded = classroom.folder / "autograded" / "ann" / ASSIGNMENT / f"{OWN[1]}.ipynb"
    notebook = nbformat.read(graded, 4)
    notebook.cells.append(v4.new_markdown_cell("It takes $2MN$:\n\n$$\\frac{x_i}{2}$$"))
    graded.chmod(0o644)
    nbformat.write(notebook, graded)
    assert write_feedback(NbGraderAPI(config=load(classroom.folder)), ASSIGNMENT, "ann", release=False) == ""
    text = (classroom.folder / "feedback" / "ann" / ASSIGNMENT / f"{OWN[1]}.html").read_text(encoding="utf-8")
    made = BeautifulSoup(text, "html.parser")
    assert [formula.text for formula in made.select("math")] == ["2MN", "xi2"]
    assert not made.select("script, img[src^=http], link[href^=http]")
    assert made.html is not None
    assert made.html["lang"] == "en"
    assert made.select("meta[name=viewport]")


def test_a_page_begins_with_the_chapter(classroom: Classroom, judge: ObedientJudge) -> None:
    """Points and next step of each notebook, links to the other pages, and the learner's own name on the boards."""
    classroom.hand_in("ann", solve(3)).with_name("01_add_vectors.ipynb").write_text("{", encoding="utf-8")
    class_actions.autograde(classroom.folder, ASSIGNMENT)
    with Store(classroom.folder / "leaderboard.sqlite") as store:
        name = assign(store, ["ann"])["ann"]
    class_actions.autograde(classroom.folder, ASSIGNMENT, release_feedback=True)
    for notebook in OWN:
        made = BeautifulSoup(page(classroom, "ann", notebook), "html.parser")
        rows = [[cell.text for cell in row.select("th, td")] for row in made.select("section[aria-label] tbody tr")]
        assert [row[0] for row in rows] == [*OWN]
        assert rows[0][2].startswith("Not graded")
        assert rows[1][1:] == ["3 of 10", "Open its page: each report says what to fix first."]
        assert made.select_one(f'a[href="{OWN[0]}.html"]')
        assert f"Your name on the leaderboard is {name}." in made.text
    made = BeautifulSoup(page(classroom, "ann", OWN[1]), "html.parser")
    assert "3 of 10 points" in made.select("h1 + p")[0].text
    targets = [str(link["href"]) for link in made.select('header li a[href^="#"]')]
    assert targets
    assert all(made.find(id=target[1:]) for target in targets)


@pytest.mark.browser
def test_a_page_fits_a_phone(classroom: Classroom, judge: ObedientJudge, browser_page: Callable[..., Any]) -> None:
    """The names of notebooks are long words; the table's last column says what to do."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT)
    made = browser_page(viewport={"width": 320, "height": 640})
    made.goto((classroom.folder / "feedback" / "ann" / ASSIGNMENT / f"{OWN[1]}.html").as_uri())
    assert made.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_only_pages_that_changed_are_written(classroom: Classroom, judge: ObedientJudge) -> None:
    """In a class of 300, a run for one new submission must not write everybody's; what a person gave is a change."""

    def grade(*, release_feedback: bool = True, force: bool = False) -> set[str]:
        """The students whose pages were written again, in the course folder or in the exchange."""
        before = {file: file.stat().st_mtime_ns for file in pages()}
        class_actions.autograde(classroom.folder, ASSIGNMENT, release_feedback=release_feedback, force=force)
        return {owner(file) for file in pages() if file.stat().st_mtime_ns != before.get(file)}

    def pages() -> list[Path]:
        exchange = classroom.folder.with_name("course-exchange") / "gpu-course" / "feedback"
        return [*classroom.folder.glob("feedback/*/*/*.html"), *exchange.glob("*.html")]

    def owner(file: Path) -> str:
        is_released = file.parent.name == "feedback"
        return "released" if is_released else file.parts[-3]

    for student in ("ann", "bob"):
        classroom.hand_in(student, solve(3))
    assert grade(release_feedback=False) == {"ann", "bob"}
    assert grade() == {"ann", "bob", "released"}
    assert grade() == set()
    assert grade(force=True) == set()
    classroom.hand_in("bob", solve(4))
    assert grade() == {"bob", "released"}
    with classroom.gradebook() as gradebook:
        gradebook.find_grade("check-softmax", OWN[1], ASSIGNMENT, "ann").manual_score = 5.0
        gradebook.find_comment("softmax", OWN[1], ASSIGNMENT, "ann").manual_comment = "Well done."
        gradebook.db.commit()
    assert grade() == {"ann", "released"}
    assert "Well done." in page(classroom, "ann", OWN[1])


def test_a_page_is_for_the_learner_whose_work_it_is(classroom: Classroom, judge: ObedientJudge, tmp_path: Path) -> None:
    """Feedback without a secret to name it, or with a link to another's, stays in the course folder."""
    other = tmp_path / "secret"
    other.write_text("0" * 128, encoding="utf-8")
    for number, student in enumerate(("ann", "bob")):
        folder = classroom.hand_in(student, solve(3)).parent
        for name in OWN:
            (folder / f"{name}.ipynb").write_text("{", encoding="utf-8")
        (folder / "submission_secret.txt").unlink()
        if number:
            (folder / "submission_secret.txt").symlink_to(other)
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, release_feedback=True)
    assert result.feedback == "written"
    for each in result.students:
        assert "the feedback is not released: this work has no submission_secret.txt" in each.reason
        assert (classroom.folder / "feedback" / each.student / ASSIGNMENT / f"{OWN[0]}.html").is_file()
    assert not any(classroom.folder.with_name("course-exchange").glob("gpu-course/feedback/*"))
    assert not any(classroom.folder.glob("feedback/*/*/.shown"))  # the instructor is told to send these folders


def test_what_the_pages_show_is_noted_for_the_instructor_alone(classroom: Classroom, judge: ObedientJudge) -> None:
    """A damaged note, or pages that are gone from the exchange, lead to the same pages again."""
    exchange = classroom.folder.with_name("course-exchange") / "gpu-course" / "feedback"
    note = classroom.folder / "feedback" / "ann" / ASSIGNMENT / ".shown"

    def grade() -> None:
        assert class_actions.autograde(classroom.folder, ASSIGNMENT, release_feedback=True).ok
        assert "3 of 10" in page(classroom, "ann", OWN[1])
        assert {file.suffix for file in exchange.iterdir()} == {".html"}
        assert len(list(exchange.iterdir())) == 2

    classroom.hand_in("ann", solve(3))
    grade()
    written = note.read_bytes()
    for damaged in (b"", b"\xff\xfe", b"0 released"):
        note.write_bytes(damaged)
        grade()
        assert note.read_bytes() == written
    note.unlink()
    note.mkdir()
    grade()
    assert note.read_bytes() == written
    shutil.rmtree(exchange)
    grade()
    assert len(judge.sources) == 2


def test_a_page_without_grades_holds_text_alone() -> None:
    """Quoted text is escaped, the page loads nothing, and no script may run in it."""
    text = page_without_grades("a.ipynb", "Line 1 is `<script>x</script>`: <img src=//x> $x$ \x1b]0;y\x07")
    assert "<code>&lt;script&gt;x&lt;/script&gt;</code>: &lt;img src=//x&gt;" in text
    assert "default-src 'none'" in text
    assert 'class="tex2jax_ignore mathjax_ignore"' in text
    assert not [each for each in ("<script", "<img", "http:", "https:", "\x1b") if each in text]


def test_a_large_class_gets_its_pages_from_several_processes(
    classroom: Classroom, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They write what one process writes, and report what it cannot write; if one dies, this process goes on alone."""
    students = ["ann", "bob", "cid"]
    for name in students:
        classroom.hand_in(name, solve(3))
    classroom.hand_in("cid", solve(3)).with_name(f"{OWN[0]}.ipynb").write_text("{", encoding="utf-8")
    class_actions.autograde(classroom.folder, ASSIGNMENT, release_feedback=True)
    written = {(name, own): page(classroom, name, own) for name in ("ann", "cid") for own in OWN}
    (classroom.folder / "autograded" / "bob" / ASSIGNMENT / "submission_secret.txt").unlink()
    monkeypatch.setattr("grader.classroom.student_feedback._STUDENTS_PER_PROCESS", 1)
    released = classroom.folder.with_name("course-exchange") / "gpu-course" / "feedback"
    steps: list[str] = []

    def progress(text: str, *_: int) -> None:
        assert released.is_dir()  # before several processes would make it
        steps.append(text)

    api = NbGraderAPI(config=load(classroom.folder))
    for _ in range(2):
        shutil.rmtree(classroom.folder / "feedback")
        shutil.rmtree(released)
        found = write_all(api, ASSIGNMENT, students, release=True, progress=progress)
        assert "has no submission_secret.txt" in (found.pop("bob") or "")
        assert found == {"ann": "", "cid": ""}
        assert {(name, own): page(classroom, name, own) for name, own in written} == written
        monkeypatch.setattr("grader.classroom.student_feedback._end_with_parent", functools.partial(os._exit, 1))
    assert steps == 2 * [f"writing feedback for {name}" for name in students]
