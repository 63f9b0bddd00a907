"""Names for the boards: chosen ones are checked, and students can leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.classroom.term.board_names import import_names, published_name
from grader.errors import ClassroomError
from grader.leaderboard.ranking import assign
from grader.leaderboard.store import Store
from tests.classroom.conftest import Classroom


@pytest.fixture
def course(new_course: Callable[..., Classroom]) -> Path:
    """A course with a board, of students in the gradebook and of one, max, who is only on the board."""
    from grader.classroom import course_folder

    folder = new_course().folder
    with course_folder.api(folder).gradebook as gradebook:
        for name in ("ann", "bob", "eve"):
            email = f"{name}.s@example.org"
            gradebook.update_or_create_student(name, first_name=name.title(), last_name="Smith", email=email)
        for name in ("lol", "billie", "arnold"):
            gradebook.update_or_create_student(name)
    with Store(folder / "leaderboard.sqlite") as store:
        assign(store, ["ann", "bob", "max"])
    return folder


def _import(course: Path, text: str) -> None:
    file = course / "names.csv"
    file.write_text(f"id,name\n{text}", encoding="utf-8")
    import_names(course, file, course / "leaderboard.sqlite")


def test_names_are_chosen_hidden_and_taken_back(course: Path) -> None:
    """Two students may exchange their names. Without a name, the old pseudonym comes back."""
    before = published_name(course, "ann")
    _import(course, "ann,Tensor Queen\nbob,Warp 9\neve,-\n")
    assert [published_name(course, each) for each in ("ann", "bob", "eve")] == ["Tensor Queen", "Warp 9", ""]
    _import(course, "ann,Warp 9\nbob,Tensor Queen\neve,\n")
    assert [published_name(course, each) for each in ("ann", "bob")] == ["Warp 9", "Tensor Queen"]
    assert published_name(course, "eve")
    _import(course, "ann,\n")
    assert published_name(course, "ann") == before


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("x", "2 to 24"), ("<b>bold</b>", "2 to 24"), ("a\u202eb", "2 to 24"), ("x" * 25, "2 to 24"),
        ("amber-heron-07", "a pseudonym"), ("torch.softmax", "taken"), ("bob", "another student"),
        ("Bob Smith", "another student"), ("b0b", "another student"), ("warp 9", "taken"), ("BOB", "another student"),
        ("Smith Bob", "another student"), ("bob_smith", "another student"), ("B o b", "another student"),
        ("\u0435\u0475\u0435", "another student"), ("Evé", "another student"), ("eve.s", "another student"),
        ("WARP9", "taken"), ("w a r p 9", "taken"), ("Torch Softmax", "taken"), ("IoI", "another student"),
        ("BiIIle", "another student"), ("B1lIie", "another student"), ("Ar nold", "another student"),
        ("M\u0430x", "2 to 24"), ("\u043c\u0430\u0445", "another student"), ("MAX", "another student"),
        ("ev\u200be", "2 to 24"), ("\uff45\uff56\uff45", "2 to 24"), ("1ol", "another student"),
        ("War\u03c1 9", "2 to 24"),
    ],
)  # fmt: skip
def test_a_name_that_misleads_is_refused(course: Path, name: str, why: str) -> None:
    """Nothing is changed then, not even for the other students in the file."""
    _import(course, "bob,Warp 9\n")
    before = published_name(course, "eve")
    with pytest.raises(ClassroomError, match=why):
        _import(course, f"eve,Fine Name\nann,{name}\n")
    assert published_name(course, "eve") == before


def test_a_course_without_a_board_has_no_names(new_course: Callable[..., Classroom]) -> None:
    """Feedback then says nothing about boards."""
    folder = new_course().folder
    assert published_name(folder, "ann") is None
    (folder / "leaderboard.sqlite").write_text("damaged", encoding="utf-8")
    assert published_name(folder, "ann") is None
