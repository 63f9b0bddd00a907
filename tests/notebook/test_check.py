"""`check` in a notebook: the right text goes to the judge, and one report comes back without a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grader.errors import JudgeStopped, UnknownExercise, UnusableSubmission
from grader.submission import from_notebook
from grader.verdict import CaseResult, Mismatch
from tests.feedback.verdicts import ALL, SIMULATOR, failing
from tests.layouts import LAYOUTS, SOLVED, STUB
from tests.notebook.conftest import raises

CELL = """import math

SCALE = 2

def softmax(x, out):
    out.copy_(x * SCALE)"""


def raised(result: Any, kind: type[BaseException]) -> str:
    """The sentence that a cell ended with; IPython must show nothing else."""
    error = result.error_in_exec
    assert isinstance(error, kind)
    shown = error._render_traceback_()  # type: ignore[attr-defined]
    assert len(shown) == 1
    assert "\n" not in shown[0]
    return str(shown[0])


def test_the_whole_cell_is_graded(notebook: Any, judge: Any) -> None:
    """The judge gets all of the cell that defines the function, its imports and constants too."""
    notebook.run(CELL)

    result = notebook.run("check(softmax)")

    assert result.success
    assert result.result is None
    assert judge.asked == [(CELL, "softmax")]
    assert "Right in the simulator" in notebook.html
    assert "4 of 10 points" in notebook.text


def test_the_version_that_was_run_last_is_graded(notebook: Any, judge: Any) -> None:
    """The version that the name is bound to counts, also for a call with the exercise's id."""
    notebook.run(CELL)
    second = CELL.replace("SCALE = 2", "SCALE = 3")
    notebook.run(second)

    notebook.run("check(softmax)")
    notebook.run("check('softmax')")

    assert judge.asked == [(second, "softmax")] * 2


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("call", ["check(softmax)", "check('softmax')"])
def test_the_notebook_judges_what_is_judged_once_it_is_handed_in(
    notebook: Any, judge: Any, layout: tuple[list[str], int], call: str
) -> None:
    """A notebook that is run from top to bottom has the same text judged as its file."""
    cells, number = layout
    for cell in cells:
        notebook.run(cell.removeprefix("*"))

    notebook.run(call)

    metadata = [{"nbgrader": {"grade_id": "softmax"}} if cell.startswith("*") else {} for cell in cells]
    file = [
        {"cell_type": "code", "source": cell.removeprefix("*"), "metadata": about}
        for cell, about in zip(cells, metadata, strict=True)
    ]
    handed_in = from_notebook({"nbformat": 4, "cells": file}, "softmax", "a.ipynb")
    assert judge.asked == [(handed_in.source.rstrip("\n"), "softmax")]  # IPython does not keep the line feed
    assert handed_in.origin == f"a.ipynb, cell {number}"


def test_the_report_says_where_the_stub_was_passed_over(notebook: Any, judge: Any) -> None:
    """The stub is mentioned only if it was run after the solution."""
    notebook.run(STUB)
    notebook.run(SOLVED)
    notebook.run("check(softmax)")
    assert "Judged" not in notebook.text

    number = notebook.shell.execution_count
    notebook.run(STUB)
    notebook.run("check(softmax)")

    said = f"Judged: In [{number - 2}], as In [{number}], which you ran last, is still the stub."
    assert said in notebook.text
    assert said in notebook.html
    assert judge.asked == [(SOLVED.rstrip("\n"), "softmax")] * 2


def test_a_cell_that_the_debugger_wrote_to_a_file_is_still_a_cell(notebook: Any, judge: Any) -> None:
    """JupyterLab's debugger keeps cells in files named after their code objects; the cell is graded anyway."""
    notebook.run(CELL)
    file = Path(notebook.shell.user_ns["softmax"].__code__.co_filename)
    file.write_text(CELL)
    try:
        assert notebook.run("check(softmax)").success
    finally:
        file.unlink()
    assert judge.asked == [(CELL, "softmax")]


BROKEN = CELL.replace("def softmax(x, out):", "def softmax(x, out)")


@pytest.mark.parametrize("call", ["check(softmax)", "check('softmax')"])
def test_a_cell_with_a_syntax_error_is_not_passed_over(notebook: Any, judge: Any, call: str) -> None:
    """The version that was run before is not judged instead of the one with the error."""
    judge.verdict = ALL["unusable"]  # as for a text that is not Python
    notebook.run(CELL)
    notebook.run(BROKEN)
    notebook.run("1 + 1")

    notebook.run(call)

    assert judge.asked == [(BROKEN, "softmax")]
    said = "The cell as you last ran it has a syntax error in line 5: expected ':'. Nothing was checked."
    assert said in " ".join(notebook.text.split())
    assert "checked: cell" not in notebook.text


def test_a_syntax_error_that_was_fixed_is_forgotten(notebook: Any, judge: Any) -> None:
    """Only the last run counts: an earlier error does not matter, nor does one in another cell."""
    notebook.run(BROKEN)
    notebook.run(CELL)
    notebook.run("def vector_add(x, y, out)\n    pass")
    notebook.run("print('def softmax'")

    notebook.run("check(softmax)")

    assert judge.asked == [(CELL, "softmax")]


def test_a_syntax_error_before_the_function_got_its_name(notebook: Any, judge: Any) -> None:
    """An error that is older than the checked cell does not count, even if that cell defines another name."""
    mine = "def mine(x, out):\n    pass\n\nsoftmax = mine"
    notebook.run(BROKEN)
    notebook.run(mine)

    notebook.run("check(softmax)")

    assert judge.asked == [(mine, "softmax")]


def test_a_syntax_error_in_the_first_version(notebook: Any, judge: Any) -> None:
    """The report names the error even if the function was never defined."""
    judge.verdict = ALL["unusable"]  # as for a text that is not Python
    notebook.run(BROKEN)

    notebook.run("check('softmax')")

    assert "has a syntax error in line 5" in " ".join(notebook.text.split())


def test_the_report_says_which_cell_it_is_on(notebook: Any, judge: Any) -> None:
    """The old cell is checked after the function was renamed, and the report gives its number."""
    notebook.run(CELL)
    number = notebook.shell.execution_count - 1
    notebook.run(CELL.replace("def softmax", "def my_softmax"))

    notebook.run("check(softmax)")

    assert f"checked: cell In [{number}]" in " ".join(notebook.text.split())
    assert f"checked: cell In [{number}]" in notebook.html
    assert "take no points" not in notebook.text


@pytest.mark.parametrize("call", ["check", "benchmark", "standings"])
def test_a_call_without_an_exercise_is_one_sentence(notebook: Any, judge: Any, call: str) -> None:
    """The sentence says how to name an exercise."""
    assert raised(notebook.run(f"{call}()"), UnusableSubmission) == f"Name the exercise: `{call}(softmax)`."


def test_a_decorated_function_and_a_kernel_object(notebook: Any, judge: Any) -> None:
    """The cell of a wrapped function is found."""
    cell = (
        "import functools\n\n"
        "class Jit:\n    def __init__(self, fn):\n        self.fn, self.__name__ = fn, fn.__name__\n"
        "    def __call__(self, x, y, out):\n        pass\n\n"
        "def twice(fn):\n    return functools.wraps(fn)(lambda *args: fn(*args))\n\n"
        "@Jit\n@twice\ndef vector_add(x, y, out):\n    pass"
    )
    notebook.run(cell)

    notebook.run("check(vector_add)")

    assert judge.asked == [(cell, "vector_add")]


def test_a_function_under_another_name(notebook: Any, judge: Any) -> None:
    """The function that the exercise's name is bound to counts."""
    cell = "def mine(x, out):\n    pass\n\nsoftmax = mine"
    notebook.run(cell)

    notebook.run("check(softmax)")

    assert judge.asked == [(cell, "softmax")]


def test_progress_is_shown_and_then_gone(notebook: Any, judge: Any) -> None:
    """A bar is shown while the judge works, and the report replaces it."""
    seen = []
    judge.act = lambda: seen.extend(notebook.shell.display_pub.outputs)
    notebook.run(CELL)

    notebook.run("check(softmax)")

    assert 'role="progressbar"' in seen[-1]["data"]["text/html"]
    assert "checking 1 × 1" in seen[-1]["data"]["text/html"]
    assert len(notebook.shown) == 1
    assert "progressbar" not in notebook.html


def test_an_interrupt_is_one_sentence(notebook: Any, judge: Any) -> None:
    """An interrupted `check` removes its progress bar and shows one sentence; the next cell runs as usual."""
    judge.act = raises(KeyboardInterrupt())
    notebook.run(CELL)

    said = raised(notebook.run("check(softmax)"), KeyboardInterrupt)

    assert said == "Stopped. Nothing was graded, and your notebook is as it was."
    assert notebook.html == ""
    assert notebook.run("1 + 1").result == 2


def test_a_judge_that_stops_is_one_sentence(notebook: Any, judge: Any) -> None:
    """A failure of the judge is reported as such, without a traceback."""
    judge.act = raises(JudgeStopped("The judge's process ended before its verdict."))
    notebook.run(CELL)

    assert raised(notebook.run("check(softmax)"), JudgeStopped) == "The judge's process ended before its verdict."


@pytest.mark.parametrize(
    ("before", "call", "kind", "says"),
    [
        ("def soft_max(x, out): pass", "check(soft_max)", UnknownExercise, "There is no exercise 'soft_max'"),
        ("", "check('soft_max')", UnknownExercise, "Did you mean 'softmax'?"),
        ("", "check('softmax')", UnusableSubmission, "run the cell that defines it"),
        ("", "check(3)", UnusableSubmission, "this is of type int"),
        ("softmax = 3", "check('softmax')", UnusableSubmission, "write `def softmax(x, out)`"),
        ("import json", "softmax = json.dumps; check(softmax)", UnusableSubmission, "comes from"),
        ("exec('def softmax(x, out): pass')", "check(softmax)", UnusableSubmission, "is not known"),
        ("%matplotlib --list\ndef softmax(x, out):\n    pass", "check(softmax)", UnusableSubmission, "magic"),
    ],
)
def test_what_cannot_be_graded_gets_one_sentence(notebook: Any, judge: Any, before: str, call: str,
                                                 kind: type[Exception], says: str) -> None:  # fmt: skip
    """The sentence says what is wrong and what to do."""
    notebook.run(before)

    said = raised(notebook.run(call), kind)

    assert says in said
    assert judge.asked == []


def test_a_failed_check_does_not_stop_the_notebook(notebook: Any, judge: Any) -> None:
    """A wrong solution gets a report, not an error: the cells below still run."""
    judge.verdict = ALL["mismatch"]
    notebook.run(CELL)

    result = notebook.run("check(softmax)")

    assert result.success
    assert "Is the tail masked?" in notebook.html


def test_the_line_of_the_cell_is_shown(notebook: Any, judge: Any) -> None:
    """The report quotes the cell that was graded."""
    judge.verdict = ALL["exception"]
    notebook.run(CELL + "\n\n# more\n# lines")

    notebook.run("check(softmax)")

    assert "<mark>  8 ▸ # more</mark>" in notebook.html


def test_validation_sees_what_is_missing(notebook: Any, judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under nbgrader's Validate a wrong solution is an error, and a correct one is not."""
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    notebook.run(CELL)
    assert notebook.run("check(softmax)").success

    judge.verdict = ALL["mismatch"]
    result = notebook.run("check(softmax)")

    assert "Fuse a softmax: Not right yet. 1079 of 64,823" in result.error_in_exec._render_traceback_()[0]


def test_validation_reads_the_cell_too(notebook: Any, judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint from the text of the cell is in the error of nbgrader's Validate, as in the report."""
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    nothing = Mismatch("out", (3, 128), 384, 384, (0, 0), "never written", "1", (0, 0), (2, 127), unwritten=384)
    judge.verdict = failing("softmax", SIMULATOR, 1, CaseResult("", False, nothing))
    notebook.run("def softmax(x, out):\n    return x")

    result = notebook.run("check(softmax)")

    assert "the result must be written to `out`." in result.error_in_exec._render_traceback_()[0]


def test_stock_autograding_reads_the_points(notebook: Any, judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is the points if nbgrader executes the check: without a result it would give full marks."""
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    judge.verdict = ALL["mismatch"]
    notebook.run(CELL)

    assert notebook.run("check(softmax)").result == 0.0


def test_the_best_result_is_recorded_and_shown(notebook: Any, judge: Any) -> None:
    """`check` keeps the best verdict in the learner's folder, above the chapters, and `progress` shows it."""
    notebook.run(CELL)
    notebook.run("check(softmax)")
    judge.verdict = ALL["mismatch"]
    notebook.run("check(softmax)")

    result = notebook.run("progress()")

    assert result.success, result.error_in_exec
    stored = json.loads((Path("..") / ".grader" / "progress.json").read_text())
    assert stored["exercises"]["softmax"]["points"] == 4
    assert stored["exercises"]["softmax"]["checks"] == 2
    assert result.result is None
    assert "4 of 10" in notebook.html
    assert "the rest needs a GPU: 6 points" in notebook.text


def test_in_a_terminal_it_is_text(notebook: Any, judge: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The report is printed as plain text outside a notebook."""
    del notebook.shell.__dict__["kernel"]
    notebook.run(CELL)
    capsys.readouterr()

    notebook.run("check(softmax)")

    assert capsys.readouterr().out.startswith("✓ Right in the simulator: Fuse a softmax.")


def test_the_real_judge_end_to_end(notebook: Any) -> None:
    """A cell goes to the real judge, and its verdict comes back as a report."""
    from grader.judge.service import shared_judge

    notebook.run("def vector_add(x, y, out):\n    raise NotImplementedError('not written yet')\n")
    try:
        result = notebook.run("check(vector_add)")
        first = notebook.html
        notebook.run("def vector_add(x, y, out)\n    pass")
        notebook.run("check(vector_add)")
    finally:
        shared_judge().close()

    assert result.success
    assert "Not written yet" in first
    assert "Nothing was checked." in notebook.html
    assert "0 of 5 points" in notebook.text
