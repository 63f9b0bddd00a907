"""Typical mistakes fail and the report names the bug; correct work in other styles passes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from grader.exercises import EXERCISES
from grader.feedback.report import as_text
from grader.judge.service import Judge
from grader.verdict import Verdict
from tests.honest import corpus as honest
from tests.mistakes.corpus import FOLDER, HeaderError, Submission, corpus, read

pytestmark = pytest.mark.timeout(300)

_ALL = corpus()
_LEAST_WRONG, _LEAST_RIGHT = 5, 2
_MORE_DRAWS = 3


def _named(chosen: list[Submission]) -> dict[str, Any]:
    return {"argvalues": chosen, "ids": [each.name for each in chosen]}


def _graded(judge: Judge, submission: Submission) -> tuple[Verdict, str]:
    """The verdict, and its report on one line."""
    verdict = judge.grade(submission.source, submission.exercise)
    return verdict, " ".join(as_text(verdict, submission.source).split())


@pytest.mark.parametrize("submission", **_named([each for each in _ALL if each.runs != "gpu"]))
def test_in_the_simulator_a_bug_is_named_and_right_work_passes(quick_judge: Any, submission: Submission) -> None:
    """A mistake gets no points, and its sentence is in the report. Correct work gets all points available, and no
    findings but the notes that its file names.
    """
    verdict, report = _graded(quick_judge, submission)
    if submission.right:
        assert (verdict.status, verdict.points) == ("passed", verdict.reachable_points), report
        assert bool(verdict.findings) == bool(submission.notes), report
        assert submission.notes in report, report
        return
    assert (verdict.status, verdict.points) == ("failed", 0), report
    for _ in range(_MORE_DRAWS):  # in a few draws of a hundred the first case looks like another bug's
        if submission.says in report:
            break
        verdict, report = _graded(quick_judge, submission)
        assert (verdict.status, verdict.points) == ("failed", 0), report
    assert submission.says in report, report


_DIED = "import os\ndef vector_add(x, y, out):\n    print('about to end')\n    os._exit(3)\n"


@pytest.mark.parametrize("name", ["mean_cuda/right_two_kernels", "softmax/block_too_short", "died"])
def test_forked_workers_give_the_verdict_that_caged_ones_give(
    simulator_judge: Judge, quick_judge: Any, name: str
) -> None:
    """Correct work, a mistake and a process that exits: the quick judge of these tests only leaves out the sandbox."""
    source = _DIED if name == "died" else read(FOLDER / f"{name}.py").source
    exercise = "vector_add" if name == "died" else name.split("/")[0]
    quick, caged = quick_judge.grade(source, exercise), simulator_judge.grade(source, exercise)
    for field in ("status", "points", "failure", "findings", "log"):
        assert getattr(quick, field) == getattr(caged, field), field
    assert [case.passed for case in quick.cases] == [case.passed for case in caged.cases]


@pytest.mark.gpu
@pytest.mark.parametrize("submission", **_named([each for each in _ALL if each.runs != "simulator"]))
def test_on_a_gpu_a_bug_is_named_and_right_work_passes(gpu_judge: Judge, submission: Submission) -> None:
    """A mistake loses points and its sentence is in the report; correct work gets the correctness points."""
    verdict, report = _graded(gpu_judge, submission)
    if submission.right:
        assert verdict.points >= EXERCISES[submission.exercise].correctness_points, report
        assert [finding for finding in verdict.findings if finding.kind in ("rule", "clock")] == [], report
    else:
        assert (verdict.status, verdict.points < verdict.max_points) == ("failed", True), report
        assert submission.on_gpu in report, report


def test_every_exercise_has_mistakes_and_other_right_ways() -> None:
    """At least five wrong and two right ones, here or in the honest corpus; each folder has an exercise."""
    wrong = Counter(each.exercise for each in _ALL if not each.right)
    right = Counter([each.exercise for each in _ALL if each.right] + [each.exercise for each in honest.corpus()])
    assert {each.exercise for each in _ALL} <= set(EXERCISES)
    assert {name: wrong[name] for name in EXERCISES if wrong[name] < _LEAST_WRONG} == {}
    assert {name: right[name] for name in EXERCISES if right[name] < _LEAST_RIGHT} == {}


@pytest.mark.parametrize(
    "header",
    ["", "# mistake: none\n# runs: gpu\n", "# right: a\n# says: b\n# runs: gpu\n", "# right: a\n# runs: here\n"],
)
def test_a_file_says_what_it_is(tmp_path: Path, header: str) -> None:
    """A header with a missing line or an extra one is rejected."""
    path = tmp_path / "some.py"
    path.write_text(header + "\nimport torch\n")
    with pytest.raises(HeaderError):
        read(path)
