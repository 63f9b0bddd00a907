"""Tests of grader.classroom.preprocessor and released_cells: verdicts in the gradebook, whatever a notebook says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.classroom import class_actions, released_cells
from grader.classroom import course_folder as folder
from grader.classroom.grading.verdict_store import Task
from grader.classroom.preprocessor import JudgeCells
from grader.classroom.released_cells import rebuilt
from grader.errors import JudgeStopped, MachineLacks
from grader.exercise import MAX_SOURCE_BYTES
from grader.judge.sandbox import launch
from grader.submission import from_file
from grader.submission.file_reading import grade_id_of
from grader.verdict import Failure, Finding, Verdict
from grader.worker.simulator.lacks import sentence
from tests.classroom.conftest import ASSIGNMENT, Classroom, Edit, ObedientJudge, cell_of, change, code, solve
from tests.layouts import LAYOUTS


def autograde(classroom: Classroom, **options: Any) -> dict[str, Any]:
    """The result for each student."""
    result = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False, **options)
    return {student.student: student for student in result.students}


def outputs(notebook: dict[str, Any], grade_id: str = "check-softmax") -> list[dict[str, Any]]:
    return list(cell_of(notebook, grade_id)["outputs"])


def text_of(output: dict[str, Any]) -> str:
    return "".join(output["data"]["text/plain"])


def test_without_a_sandbox_a_class_is_not_graded(
    classroom: Classroom, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the command nor nbgrader's own grades, and the message says why; --no-sandbox overrides it."""
    monkeypatch.setattr("grader.judge.sandbox.bubblewrap.find", lambda: None)
    launch.decided.cache_clear()
    monkeypatch.setattr("grader.judge.sandbox.must_be_caged", launch.must_be_caged)
    classroom.hand_in("ann", solve(7.5))
    for grade in (lambda: autograde(classroom), lambda: JudgeCells().judging.verdict(Task("", "softmax"))):
        with pytest.raises(MachineLacks, match="bubblewrap is not installed"):
            grade()
    assert judge.sources == []
    assert autograde(classroom, sandbox=False)["ann"].score == 7.5


def test_times_of_the_practice_clock_give_no_grade_unless_accepted(
    classroom: Classroom, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work waits for a person, and the reason names the option that accepts the clock."""
    classroom.hand_in("ann", solve(7.5))
    grade = judge.grade

    def practised(*args: Any, **options: Any) -> Verdict:
        verdict = grade(*args, **options)
        return replace(verdict, environment=replace(verdict.environment, practice=True))

    monkeypatch.setattr(judge, "grade", practised)
    refused = autograde(classroom)["ann"]
    assert "--practice-clock" in refused.reason
    assert classroom.grade("ann") == (None, True)
    assert autograde(classroom, practice_clock=True)["ann"].score == 7.5


def test_gradebook_holds_the_verdicts(classroom: Classroom, judge: ObedientJudge) -> None:
    """Each check cell's score is the verdict's, and the notebook has report, score and verdict in it."""
    classroom.hand_in("ann", solve(7.5))
    result = autograde(classroom)["ann"]
    assert (result.outcome, result.score, result.max_score, result.reason) == ("graded", 7.5, 15, "")
    assert classroom.grade("ann") == (7.5, False)
    assert classroom.grade("ann", "check-vector_add", "01_add_vectors") == (0, False)
    cell = cell_of(classroom.autograded("ann"), "check-softmax")
    report, score = cell["outputs"]
    assert (report["output_type"], score["output_type"]) == ("display_data", "execute_result")
    assert text_of(score) == "7.5"
    assert "<" in "".join(report["data"]["text/html"])
    assert cell["metadata"]["grader"]["verdict"]["points"] == 7.5


HOSTILE = {
    "sql": "import sqlite3; sqlite3.connect('../gradebook.db').execute('UPDATE grade SET auto_score = 200')",
    "formatter": "get_ipython().display_formatter.formatters['text/plain'].for_type(object, lambda *_: '10')",
    "exit": "import os; os._exit(0)",
    "ast": "import ast; get_ipython().ast_transformers.append(ast.NodeTransformer())",
    "judge": "import grader; grader.check = lambda f: 10.0",
    "trace": "open('ran.txt', 'w').write('x'); import pathlib; pathlib.Path('{marker}').write_text('ran')",
}


@pytest.mark.parametrize("points", [0.0, 10.0])
def test_nothing_of_the_notebook_runs(
    classroom: Classroom, judge: ObedientJudge, tmp_path: Path, points: float
) -> None:
    """Hostile cells gain nothing for a bad solution and lose nothing for a good one."""
    marker = tmp_path / "marker"
    for name, source in HOSTILE.items():

        def edit(notebook: dict[str, Any], source: str = source) -> None:
            solve(points)(notebook)
            notebook["cells"].insert(0, code(source.replace("{marker}", str(marker))))
            notebook["cells"].append(code(source.replace("{marker}", str(marker))))

        classroom.hand_in(name, edit)
    results = autograde(classroom)
    assert {name: result.score for name, result in results.items()} == dict.fromkeys(HOSTILE, points)
    assert not any(result.reason for result in results.values())
    assert not marker.exists()


def _forge_outputs(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            data = {"text/plain": "10.0"}
            score = {"output_type": "execute_result", "execution_count": 1, "data": data, "metadata": {}}
            cell["outputs"], cell["execution_count"] = [score], 1


def _nbgrader(grade_id: str, **changes: Any) -> Edit:
    return lambda notebook: cell_of(notebook, grade_id)["metadata"]["nbgrader"].update(changes)


def _without(*grade_ids: str) -> Edit:
    def edit(notebook: dict[str, Any]) -> None:
        notebook["cells"] = [cell for cell in notebook["cells"] if grade_id_of(cell) not in grade_ids]

    return edit


def _append(*cells: dict[str, Any]) -> Edit:
    return lambda notebook: notebook["cells"].extend(cells)


def _strip_metadata(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def _notebook(**changes: Any) -> Edit:
    return lambda notebook: notebook.update(changes)


GRADE = {"grade": True, "locked": True}
FORGERIES: dict[str, Edit] = {
    "outputs": _forge_outputs,
    "points": _nbgrader("check-softmax", points=1000),
    "points_text": _nbgrader("check-softmax", points="many"),
    "negative_points": _nbgrader("check-softmax", points=-1),
    "no_grade": _nbgrader("check-softmax", grade=False),
    "check_is_solution": _nbgrader("check-softmax", solution=True),
    "solution_is_grade": _nbgrader("softmax", grade=True, points=500),
    "unlocked": _nbgrader("check-softmax", locked=False),
    "checksum": _nbgrader("check-softmax", checksum="0" * 32),
    "schema_old": _nbgrader("check-softmax", schema_version=1),
    "schema_new": _nbgrader("check-softmax", schema_version=99),
    "schema_text": _nbgrader("check-softmax", schema_version="x"),
    "extra_key": _nbgrader("check-softmax", more=1),
    "task": _nbgrader("check-softmax", task=True),
    "metadata_list": change("check-softmax", metadata={"nbgrader": []}),
    "metadata_empty": change("check-softmax", metadata={"nbgrader": {}}),
    "grade_without_id": _append({**code("1"), "metadata": {"nbgrader": {"grade": True}}}),
    "check_source": change("check-softmax", source="10.0"),
    "check_is_markdown": change("check-softmax", cell_type="markdown"),
    "solution_is_markdown": change("softmax", cell_type="markdown"),
    "solution_is_raw": change("softmax", cell_type="raw"),
    "no_check": _without("check-softmax"),
    "second_check": _append(code("10.0", "check-softmax", points=10, **GRADE)),
    "second_solution_first": lambda notebook: notebook["cells"].insert(0, code("x = 10", "softmax", solution=True)),
    "unknown_check": _append(code("10.0", "check-everything", points=100, **GRADE)),
    "borrowed_check": _append(code("check(vector_add)", "check-vector_add", points=5, **GRADE)),
    "no_metadata": _strip_metadata,
    "kernel": _notebook(metadata={"kernelspec": {"name": "evil"}, "language_info": "x"}),
    "surrogate": _append(code("x = '\ud800'"), {"cell_type": "markdown", "metadata": {}, "source": "\udfff"}),
    "odd_cells": _append({"cell_type": "heading", "metadata": {}, "source": "x"}, code("x") | {"id": "c0"}),
    "minor": _notebook(nbformat_minor=2),
}


@pytest.mark.parametrize("points", [0.0, 6.5])
def test_forged_notebooks_gain_and_lose_nothing(classroom: Classroom, judge: ObedientJudge, points: float) -> None:
    """The score is that of the solution cell, whatever a learner does to metadata, check cells and outputs."""
    for name, forge in FORGERIES.items():

        def edit(notebook: dict[str, Any], forge: Edit = forge) -> None:
            solve(points)(notebook)
            forge(notebook)

        classroom.hand_in(name, edit)
    results = autograde(classroom)
    assert {name: (r.score, r.max_score, r.reason) for name, r in results.items()} == dict.fromkeys(
        FORGERIES, (points, 15, "")
    )
    assert {name: classroom.grade(name) for name in FORGERIES} == dict.fromkeys(FORGERIES, (points, False))


def _layout(cells: list[str]) -> Edit:
    def edit(notebook: dict[str, Any]) -> None:
        at = notebook["cells"].index(cell_of(notebook, "softmax"))
        notebook["cells"][at : at + 1] = [
            code(cell[1:], "softmax", solution=True) if cell.startswith("*") else code(cell) for cell in cells
        ]

    return edit


def test_a_class_judges_what_a_file_of_its_own_would(classroom: Classroom, judge: ObedientJudge) -> None:
    """The same text and note are in the report, in whichever cell and format the solution is."""
    expected = {}
    for name, (cells, _) in LAYOUTS.items():
        path = classroom.hand_in(name.replace(" ", "_").replace(",", ""), _layout(cells))
        expected[path.parent.parent.name] = from_file(path, "softmax")
    autograde(classroom)
    judged = [source for source in judge.sources if "def softmax" in source or "softmax = mine" in source]
    assert judged == list(dict.fromkeys(expected[name].source for name in sorted(expected)))  # each text once
    for name, submission in expected.items():
        shown = text_of(outputs(classroom.autograded(name))[0])
        said = " ".join(shown.split())
        assert submission.note in said
        assert ("Judged" in said) == bool(submission.note)


def test_solution_that_was_deleted_gets_zero_and_a_sentence(classroom: Classroom, judge: ObedientJudge) -> None:
    """Without a definition the submission gets 0 points, and the notebook says why."""
    classroom.hand_in("ann", _without("softmax"))
    classroom.hand_in("bob", _without("softmax", "check-softmax"))
    results = autograde(classroom)
    assert (results["ann"].score, results["bob"].score) == (0, 0)
    note, score = outputs(classroom.autograded("ann"))
    assert "No code cell of 03_fuse_a_softmax.ipynb defines `softmax`" in text_of(note)
    assert text_of(score) == "0.0"
    assert classroom.grade("bob") == (0, False)


def test_magic_in_the_solution_cell_is_explained(classroom: Classroom, judge: ObedientJudge) -> None:
    """A solution cell with %%time gets 0 points and a message, and the judge is not called."""
    classroom.hand_in("ann", change("softmax", source="%%time\ndef softmax(x, out): ...\n"))
    assert autograde(classroom)["ann"].score == 0
    assert "Line 1 of 03_fuse_a_softmax.ipynb, cell 2" in text_of(outputs(classroom.autograded("ann"))[0])
    assert not any("%%time" in source for source in judge.sources)


def test_all_outputs_of_the_learner_are_cleared(classroom: Classroom, judge: ObedientJudge) -> None:
    """Only the grader's outputs are in the graded notebook."""

    def edit(notebook: dict[str, Any]) -> None:
        solve(1)(notebook)
        notebook["cells"].append(code("print(1)"))
        _forge_outputs(notebook)

    classroom.hand_in("ann", edit)
    autograde(classroom)
    graded = classroom.autograded("ann")
    assert [len(cell.get("outputs", [])) for cell in graded["cells"]] == [0, 0, 2, 0]


@pytest.mark.parametrize(("asked", "given"), [("1e9", 10), ("-3", 0), ("10.0000001", 10)])
def test_scores_stay_within_the_cell(classroom: Classroom, judge: ObedientJudge, asked: float, given: float) -> None:
    """A verdict beyond the cell's points is clamped; nbgrader would raise, or give full marks."""
    classroom.hand_in("ann", solve(asked))
    assert autograde(classroom)["ann"].score == given


def test_instructor_may_weigh_an_exercise(new_course: Callable[..., Classroom], judge: ObedientJudge) -> None:
    """If the gradebook gives a check cell other points, the verdict is scaled to them."""
    classroom = new_course(points=20)
    classroom.hand_in("ann", solve(7.5))
    assert autograde(classroom)["ann"].score == 15


BREAKDOWNS = [
    ([JudgeStopped("The judge stopped."), JudgeStopped("The judge stopped again.")], "The judge stopped again."),
    ([MachineLacks("There is no GPU.")], "There is no GPU."),
    ([ZeroDivisionError("secret")], "The grader failed (ZeroDivisionError)"),
]


@pytest.mark.parametrize(("errors", "words"), BREAKDOWNS)
def test_broken_judge_is_not_a_zero(
    classroom: Classroom, judge: ObedientJudge, errors: list[Exception], words: str
) -> None:
    """If the judge fails there is no score: the cell needs manual grading, and report and result say so."""
    classroom.hand_in("ann", solve(10))
    judge.errors = errors.copy()  # met by vector_add, whose notebook is the first
    result = autograde(classroom)["ann"]
    assert classroom.grade("ann", "check-vector_add", "01_add_vectors") == (None, True)
    assert classroom.grade("ann") == (10, False)
    assert result.needs_manual_grade
    assert words in result.reason
    note, score = outputs(classroom.autograded("ann", "01_add_vectors"), "check-vector_add")
    assert "Not graded" in text_of(note)
    assert words in text_of(note)
    assert text_of(score) == "0.0"


def test_what_the_judge_missed_is_graded_by_the_next_run(classroom: Classroom, judge: ObedientJudge) -> None:
    """A second autograde grades only the students whose work was not judged."""
    classroom.hand_in("ann", solve(10))
    classroom.hand_in("bob", solve(9))
    judge.errors = [MachineLacks("There is no GPU.")]
    first = autograde(classroom)
    assert [first[name].needs_manual_grade for name in ("ann", "bob")] == [True, False]
    second = autograde(classroom)
    assert {name: (r.outcome, r.score, r.needs_manual_grade) for name, r in second.items()} == {
        "ann": ("graded", 10, False),
        "bob": ("unchanged", 9, False),
    }


def test_judge_that_stops_once_is_asked_again(classroom: Classroom, judge: ObedientJudge) -> None:
    """One lost judge costs only a retry."""
    classroom.hand_in("ann", solve(10))
    judge.errors = [JudgeStopped("The judge stopped.")]
    result = autograde(classroom)["ann"]
    assert (result.score, result.reason) == (10, "")
    assert judge.expected[1] == [], "the second try may not meet what was being loaded ahead"


def test_findings_are_in_the_feedback_and_take_no_points(classroom: Classroom, judge: ObedientJudge) -> None:
    """The learner reads them with the score, the instructor in the result; the gradebook does not have them."""
    classroom.hand_in("ann", solve(10))
    judge.findings = (Finding("rule", "Line 3 calls `torch.softmax`.", 3),)
    result = class_actions.autograde(classroom.folder, ASSIGNMENT)
    ann = result.students[0]
    assert (ann.score, ann.needs_manual_grade, ann.reason, result.ok) == (10, False, "", True)
    assert "Fuse a softmax: Rules: Line 3 calls `torch.softmax`." in ann.to_look_at
    assert "    Fuse a softmax: Rules: Line 3 calls `torch.softmax`." in result.to_text().splitlines()
    page = (classroom.folder / "feedback" / "ann" / ASSIGNMENT / "03_fuse_a_softmax.html").read_text(encoding="utf-8")
    assert "Line 3 calls <code>torch.softmax</code>." in page
    assert "These notes take no points." in page
    again = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).students[0]
    assert (again.outcome, again.to_look_at) == ("unchanged", ann.to_look_at)


def test_much_text_hides_no_findings(
    classroom: Classroom, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grader's own file is read whatever its size; an unreadable one is reported."""
    classroom.hand_in("ann", solve(10))
    judge.findings = (Finding("rule", "Line 3 calls `torch.softmax`.\n  bob  10 of 10\x1b[2J", 3),)
    autograde(classroom)
    monkeypatch.setattr("grader.submission.file_reading.MAX_BYTES", 10)
    _, said = class_actions._student_result(folder.api(classroom.folder), ASSIGNMENT, "ann", False, "").to_look_at
    assert said.startswith("Fuse a softmax: Rules: Line 3 calls `torch.softmax`. bob 10 of 10")
    monkeypatch.undo()
    path = classroom.folder / "autograded" / "ann" / ASSIGNMENT / "03_fuse_a_softmax.ipynb"
    path.chmod(0o644)
    for broken in ("{", "[]", '{"cells": 3}', "\udcff"):
        path.write_text(broken, encoding="utf-8", errors="surrogateescape")
        (ann,) = class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False).students
        assert any(f"the judge's findings in {path} cannot be read" in sentence for sentence in ann.to_look_at)


def test_verdicts_of_an_older_grader_are_passed_over(classroom: Classroom, judge: ObedientJudge) -> None:
    """Findings of an older version cannot be read any more, but the score is kept and nobody has to wait."""
    classroom.hand_in("ann", solve(10))
    autograde(classroom)
    path = classroom.folder / "autograded" / "ann" / ASSIGNMENT / "03_fuse_a_softmax.ipynb"
    path.chmod(0o644)
    notebook = classroom.autograded("ann")
    del cell_of(notebook, "check-softmax")["metadata"]["grader"]["verdict"]["findings"]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert autograde(classroom)["ann"].to_look_at == ()


def test_a_time_that_is_not_believed_waits_for_a_person(classroom: Classroom, judge: ObedientJudge) -> None:
    """It keeps the judge's score, is flagged in the gradebook, and is not graded again automatically."""
    classroom.hand_in("ann", solve(0))
    judge.failure = Failure("implausible", "4096 × 4096 in 1 µs is faster than this GPU allows.")
    ann = autograde(classroom)["ann"]
    assert classroom.grade("ann") == (0, True)
    assert ann.needs_manual_grade
    assert "Fuse a softmax: 4096 × 4096 in 1 µs is faster than this GPU allows." in ann.to_look_at
    assert "Held for review" in text_of(outputs(classroom.autograded("ann"))[0])
    asked = len(judge.sources)
    assert autograde(classroom)["ann"].outcome == "unchanged"
    assert len(judge.sources) == asked


def test_what_only_a_gpu_can_judge_gets_no_score(classroom: Classroom, judge: ObedientJudge) -> None:
    """The gradebook has no points for it, flags it for a person, and the class's summary says why."""
    classroom.hand_in("ann", solve(0))
    judge.failure = Failure("not_simulated", sentence("header `mma.h`"))
    ann = autograde(classroom)["ann"]
    assert ann.needs_manual_grade
    assert classroom.grade("ann") == (None, True)
    assert any("The simulator has no header `mma.h`" in each for each in ann.to_look_at)
    assert "Not judged here" in text_of(outputs(classroom.autograded("ann"))[0])


def test_verdict_that_is_no_number_is_not_full_marks(classroom: Classroom, judge: ObedientJudge) -> None:
    """nbgrader gives full marks for a score that is not a number; here it needs manual grading."""
    classroom.hand_in("ann", solve(float("nan")))
    assert autograde(classroom)["ann"].score == 0
    assert classroom.grade("ann") == (None, True)


def test_log_of_any_bytes_can_be_saved(classroom: Classroom, judge: ObedientJudge) -> None:
    """A submission's output cannot make its graded notebook unwritable."""
    judge.log = "\ud800 \x00 </script>"
    classroom.hand_in("ann", solve(10))
    assert autograde(classroom)["ann"].score == 10


def test_other_graded_cells_wait_for_a_person(new_course: Callable[..., Classroom], judge: ObedientJudge) -> None:
    """An instructor's own test cell is not run, so nbgrader does not give it full marks for having no output."""
    answer = {**code("", "answer", grade=True, solution=True, points=2), "cell_type": "markdown"}
    classroom = new_course(code("assert True", "test-own", grade=True, locked=True, points=3), answer)
    classroom.hand_in("ann", solve(10))
    classroom.hand_in("bob", change("answer", source="Because."))
    result = autograde(classroom)
    assert classroom.grade("ann", "test-own") == (None, True)
    assert classroom.grade("ann", "answer") == (0, False)  # as nbgrader has it: no response
    assert classroom.grade("bob", "answer") == (None, True)
    assert "not the check cell" in result["ann"].reason


def _cell_of_type(cell_type: str, source: str) -> Any:
    return released_cells.node(cell_type=cell_type, source=source, metadata=released_cells.node())


KNOWN = released_cells._Known("code", "", {"grade_id": "softmax"}, True)


@pytest.mark.parametrize("known", [None, KNOWN], ids=["own cell", "solution"])
@pytest.mark.parametrize(
    "text",
    [" " * 1_000_000, " \n" * 500_000, "\t\f\u2003\n" * 250_000, "a." * 30_000, "2*" * 30_000, '"\\N{' * 15_000],
    ids=["blanks", "blank lines", "white space", "names", "stars", "named characters"],
)
def test_code_that_takes_long_to_colour_is_shown_in_short_lines(known: Any, text: str) -> None:
    """Otherwise colouring code takes minutes for 64 kB on one line, and hours for a megabyte of blanks."""
    shown = released_cells._plain(_cell_of_type("code", f"match{text}x"), known, set()).source
    assert max(map(len, shown.split("\n"))) <= 500
    assert re.search(r"\s{102}", shown) is None
    assert "".join(f"match{text}x".split()).startswith("".join(shown.split()))


def test_lines_of_honest_code_are_shown_as_they_are() -> None:
    """Lines are kept up to 500 characters, with a hundred blanks."""
    text = " " * 100 + "x" * 400 + "\n\ny = 1"
    assert released_cells._plain(_cell_of_type("code", text), KNOWN, set()).source == text


@pytest.mark.parametrize("text", ["[](files/" * 30_000, "[" * 300_000, "`" * 300_000, "a\n" * 150_000])
def test_a_learners_text_is_shown_in_short_lines(text: str) -> None:
    """The search for links takes time cubic in the length of a line; the course's own text is not changed."""
    fence, *lines, end = released_cells._plain(_cell_of_type("markdown", text), None, set()).source.split("\n")
    assert (fence, set(end)) == (f"{end}text", {"`"})
    assert max(map(len, lines)) <= 500
    assert "".join(lines) == text[:MAX_SOURCE_BYTES].replace("\n", "")
    assert not any(end in line for line in lines)
    assert released_cells._plain(_cell_of_type("markdown", text), None, {text}).source == text


def test_a_learners_file_does_not_reach_nbformat(
    classroom: Classroom, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nbformat's checks take hours for a hundred kilobytes of tags, and gigabytes for a megabyte of outputs."""
    import nbformat

    seen: list[str] = []
    real = nbformat.read
    monkeypatch.setattr(
        nbformat, "read", lambda file, *how, **more: (seen.append(file.name), real(file, *how, **more))[1]
    )
    tagged = {"cell_type": "markdown", "metadata": {"tags": [*range(500), "a"]}, "source": "mine"}
    path = classroom.hand_in("ann", lambda notebook: (solve(7)(notebook), _append(tagged)(notebook))[0])
    assert autograde(classroom)["ann"].score == 7
    assert str(path.parent) not in {str(Path(name).parent) for name in seen}
    assert {Path(name).parts[-3] for name in seen if "ann" in name} == {"ann"}, "the second pass reads what we wrote"


def test_a_notebook_is_rebuilt_of_texts_and_ids() -> None:
    """Nothing else in a learner's file is kept, and entries that are not cells are skipped."""
    notebook = {
        "metadata": {"kernelspec": 3},
        "cells": [
            None,
            3,
            {},
            {"cell_type": "raw", "source": ["a\n", 3, "b"], "attachments": {"x": {}}, "id": "x" * 100},
            {"cell_type": "code", "source": 3, "metadata": {"nbgrader": {"grade_id": "softmax", "points": 9}}},
            {"cell_type": "code", "source": "\ud800", "metadata": {"nbgrader": {"grade_id": []}, "tags": []}},
        ],
    }
    made = rebuilt(notebook)
    assert (made.nbformat, made.nbformat_minor, made.metadata) == (4, 5, {"language_info": {"name": "python"}})
    assert made.cells == [
        {"id": "cell-0", "cell_type": "markdown", "metadata": {}, "source": ""},
        {"id": "cell-1", "cell_type": "markdown", "metadata": {}, "source": "a\nb"},
        {**code(""), "id": "cell-2", "metadata": {"nbgrader": {"grade_id": "softmax"}}},
        {**code("?"), "id": "cell-3"},
    ]


def test_too_much_in_a_notebook_counts_as_not_handed_in(classroom: Classroom, judge: ObedientJudge) -> None:
    """The message says why, and the others are graded."""
    classroom.hand_in("ann", solve(7))
    classroom.hand_in("eve", lambda notebook: notebook["cells"].extend([code("x")] * 1000))
    results = autograde(classroom)
    assert (results["ann"].score, results["eve"].score) == (7, 0)
    assert "cells, and at most 1000 are read" in results["eve"].reason


@pytest.mark.parametrize("cell_type", ["markdown", "raw"])
def test_script_in_a_text_cell_does_not_reach_the_instructors_browser(
    new_course: Callable[..., Classroom], judge: ObedientJudge, cell_type: str
) -> None:
    """A learner's text is shown as typed; the course's own text is still rendered."""
    ours = {"cell_type": "markdown", "metadata": {}, "source": "<b>ours</b>"}
    classroom = new_course(ours)
    script = "<script>fetch('/formgrader/api/grade/1')</script>\n\n[x](javascript:alert(1))"
    attacks = [
        {"cell_type": cell_type, "metadata": {"raw_mimetype": "text/html"}, "source": source}
        for source in (script, f"```\n{script}", f"`````\n````\n{script}")
    ]
    classroom.hand_in("ann", lambda notebook: notebook["cells"].extend(attacks))
    class_actions.autograde(classroom.folder, ASSIGNMENT)
    page = (classroom.folder / "feedback" / "ann" / ASSIGNMENT / "03_fuse_a_softmax.html").read_text(encoding="utf-8")
    assert "<b>ours</b>" in page
    assert "&lt;script&gt;fetch(" in page
    assert "<script>fetch(" not in page
    assert 'href="javascript' not in page


def test_unreadable_notebook_does_not_stop_the_others(classroom: Classroom, judge: ObedientJudge) -> None:
    """One learner's broken file is reported in a sentence; the rest of the class is graded."""
    classroom.hand_in("ann", solve(10))
    classroom.hand_in("eve", solve(10)).write_text("{", encoding="utf-8")
    classroom.hand_in("mal", solve(10)).write_text(json.dumps({"nbformat": 4, "cells": 3}), encoding="utf-8")
    classroom.hand_in("zoe", solve(9))
    results = autograde(classroom)
    assert (results["ann"].score, results["zoe"].score) == (10, 9)
    assert (results["eve"].score, results["mal"].score) == (0, 0)
    assert "not valid JSON" in results["eve"].reason
    assert "no list of cells" in results["mal"].reason


def test_earlier_score_does_not_outlive_a_worse_submission(classroom: Classroom, judge: ObedientJudge) -> None:
    """The newest submission counts, even if it hides its check cell."""
    classroom.hand_in("ann", solve(10))
    assert autograde(classroom)["ann"].score == 10

    def worse(notebook: dict[str, Any]) -> None:
        solve(2)(notebook)
        _without("check-softmax")(notebook)

    classroom.hand_in("ann", worse)
    assert autograde(classroom)["ann"].score == 2
