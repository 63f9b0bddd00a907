"""Tests of grader.submission.solution_cell: one rule decides which cell is judged, and the report names it."""

from __future__ import annotations

from typing import Any

import pytest

from grader.authoring import source_tree
from grader.authoring.source_tree import checkout
from grader.authoring.stubs import solution, unsolved
from grader.exercises import EXERCISES, find
from grader.submission.solution_cell import Cell, judged_cell, note_on
from tests.honest import corpus as honest
from tests.mistakes import corpus as mistakes

SOFTMAX = find("softmax")
STUB = 'def softmax(x, out):\n    raise NotImplementedError("not written yet")\n'
SOLVED = "def softmax(x, out):\n    out.copy_(x)\n"
OTHER = "def softmax(x, out):\n    out.zero_()\n"


def cells(*sources: Any) -> list[Cell]:
    """Cells 1, 2, …: a text, or a tuple of text, type and grade_id."""
    return [
        Cell(f"cell {number}", *((source,) if isinstance(source, str) else source))
        for number, source in enumerate(sources, start=1)
    ]


def marked(source: str, cell_type: str = "code") -> tuple[str, str, str]:
    return source, cell_type, "softmax"


def markdown(source: str) -> tuple[str, str, None]:
    return source, "markdown", None


STILL_THE_STUB = "Judged: cell {}, as the marked cell (cell {}) is still the stub."
THE_LAST = "Judged: cell 2, the last of the cells that define `softmax` (cell 1, cell 2)."
TURN_INTO_CODE = "select it, press Esc and then Y to turn it into a code cell."
CHOICES = {
    "the only one": (cells("import torch", marked(SOLVED)), 2, ""),
    "a new cell below the stub": (cells(marked(STUB), SOLVED), 2, STILL_THE_STUB.format(2, 1)),
    "a new cell above the stub": (cells(SOLVED, marked(STUB)), 1, STILL_THE_STUB.format(1, 2)),
    "the stub with a comment": (
        cells(marked("# mine\n" + STUB), "x = 1", SOLVED),
        3,
        STILL_THE_STUB.format(3, 1),
    ),
    "two new cells": (
        cells(marked(STUB), OTHER, SOLVED),
        3,
        "Judged: cell 3, the last of the cells that define `softmax` (cell 2, cell 3), as the marked cell (cell 1) is "
        "still the stub.",
    ),
    "another attempt below the marked cell": (cells(marked(OTHER), SOLVED), 2, THE_LAST),
    "two marked cells": (cells(marked(OTHER), marked(SOLVED)), 2, THE_LAST),
    "the marked cell emptied": (
        cells(marked(""), SOLVED),
        2,
        "Judged: cell 2, as the marked cell (cell 1) does not define `softmax`.",
    ),
    "metadata lost": (cells(SOLVED, "softmax(x, out)"), 1, ""),
    "metadata lost, the stub too": (cells(STUB, SOLVED), 2, "Judged: cell 2, as cell 1 is still the stub."),
    "nothing but the stub": (cells(marked(STUB)), 1, ""),
    "a syntax error is no stub": (cells(marked(SOLVED), "def softmax(x, out\n"), 2, THE_LAST),
    "a syntax error in the name": (cells(marked("deff softmax(x, out): pass")), 1, ""),
    "a copy under a magic": (cells(marked(SOLVED), "%%writefile softmax.py\n" + OTHER), 1, ""),
    "a magic above the solution": (cells(marked(STUB), "%%time\n" + SOLVED), 2, STILL_THE_STUB.format(2, 1)),
    "letters that Python takes for others": (cells("def \uff53oftmax(x, out): pass"), 1, ""),
    "the marked cell as Markdown": (
        cells(marked(SOLVED, "markdown")),
        1,
        f"Judged: cell 1, which is a Markdown cell: {TURN_INTO_CODE}",
    ),
    "the marked cell as raw text": (
        cells("x = 1", marked(SOLVED, "raw")),
        2,
        f"Judged: cell 2, which is a raw cell: {TURN_INTO_CODE}",
    ),
    "Markdown, and code": (
        cells(marked(OTHER, "markdown"), SOLVED),
        2,
        "Judged: cell 2, as the marked cell (cell 1) does not define `softmax`.",
    ),
    "a new Markdown cell below the stub": (
        cells(marked(STUB), markdown(SOLVED)),
        1,
        f"Not judged: cell 2, which is a Markdown cell: {TURN_INTO_CODE}",
    ),
    "prose about it": (cells(marked(STUB), markdown("Write\n```python\n" + STUB + "```\nnow.")), 1, ""),
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_one_cell_is_judged_and_the_report_says_why(choice: tuple[list[Cell], int, str]) -> None:
    """The last code cell that defines the function counts, except stubs; the note names it if there was a choice."""
    given, number, note = choice
    judged = judged_cell(given, SOFTMAX)
    assert judged is given[number - 1]
    assert note_on(judged, given, SOFTMAX) == note


@pytest.mark.parametrize(
    "given",
    [cells(), cells("softmax(x, out)"), cells(marked("y = 2")), cells(markdown(SOLVED)), cells(marked("# no", "raw"))],
)
def test_without_a_definition_nothing_is_judged(given: list[Cell]) -> None:
    """A call of the function does not count, nor does text that nobody marked."""
    assert judged_cell(given, SOFTMAX) is None


def test_every_released_stub_is_known_as_one() -> None:
    """The stub is known even after a docstring, a comment and an import were added."""
    stubs = {each: unsolved(each) for each in EXERCISES}
    assert [each for each, text in stubs.items() if not Cell("", text).is_stub] == []
    changed = {each: f'"""Mine."""\nimport os\n{text}\n# TODO\n' for each, text in stubs.items()}
    assert [each for each, text in changed.items() if not Cell("", text).is_stub] == []


def test_no_solution_is_taken_for_a_stub() -> None:
    """The course's solutions, honest work, mistakes and a refusal of other inputs are not stubs."""
    assert [each for each in EXERCISES if Cell("", solution(each)).is_stub] == []
    assert [each.name for each in honest.corpus() if Cell("", each.source).is_stub] == []
    assert [each.name for each in mistakes.corpus() if Cell("", each.source).is_stub] == []
    for text in (
        'def softmax(x, out):\n    if x.dim() != 2:\n        raise NotImplementedError("not written yet")\n    go(x)',
        'def softmax(x, out):\n    return go(x)\n    raise NotImplementedError("not written yet")',
        'def softmax(x, out):\n    raise NotImplementedError("2-d only")',
        "@triton.jit\ndef kernel(x):\n    tl.store(x, 1)  # YOUR CODE HERE\n",
        'source = "void f() {\\n  go();\\n  // YOUR CODE HERE\\n}"',
        "def nothing():\n    pass\n",
    ):
        assert not Cell("", text).is_stub, text


def test_no_released_notebook_defines_a_function_in_a_second_cell() -> None:
    """A second cell would count instead of the learner's."""
    for path in sorted(checkout().source.glob("*/*.py")):
        given = [
            Cell(str(number), cell.text, cell.kind, cell.nbgrader.get("grade_id"))
            for number, cell in enumerate(source_tree.read(path.read_text(encoding="utf-8"), path.name))
        ]
        for exercise in EXERCISES.values():
            if any(cell.grade_id == exercise.id for cell in given):
                defining = [cell for cell in given if cell.cell_type == "code" and cell.defines(exercise.entry)]
                assert [cell.grade_id for cell in defining] == [exercise.id], (path.name, exercise.id)
