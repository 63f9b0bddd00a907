"""Honest work before the judge: whatever its style, it gets what it earns, and nothing is said against it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from grader.exercises import find
from grader.judge.screening import refuse
from grader.judge.service import Judge
from grader.verdict import Verdict
from tests.honest.corpus import SUBMISSIONS, HeaderError, Honest, corpus, read

pytestmark = pytest.mark.timeout(300)

_ALL = corpus()
_LEAST = {"vector_add": 30, "softmax": 20, "square_matrix": 10}
_AHEAD = 8  # files that the judge is told of beside the one that is graded
_HEADER = "# honest: plain\n# exercise: vector_add\n# runs: anywhere\n# gates: passes\n"


def _named(chosen: list[Honest]) -> dict[str, Any]:
    return {"argvalues": chosen, "ids": [honest.name for honest in chosen]}


@pytest.mark.parametrize("honest", **_named([honest for honest in _ALL if honest.runs == "anywhere"]))
def test_it_earns_in_the_simulator_what_can_be_earned_there(judge: Judge, honest: Honest) -> None:
    """Every case is right, and there is no failure and no finding."""
    verdict = judge.grade(honest.source, honest.exercise)
    _is_right(verdict, honest)
    assert (verdict.status, verdict.points) == ("passed", verdict.reachable_points), verdict
    assert verdict.findings == ()


@pytest.mark.gpu
@pytest.mark.parametrize("honest", **_named(_ALL))
def test_it_earns_on_a_gpu_what_it_is_worth(gpu_judge: Judge, honest: Honest) -> None:
    """Every case is right, no rule is said to be broken, no clock to disagree, and what is fast has all points."""
    if honest.lacks:
        pytest.skip(f"{honest.lacks} cannot be imported here")
    following = _ALL[_ALL.index(honest) + 1 :]
    gpu_judge.expect([(next_.source, next_.exercise) for next_ in [honest, *following][: _AHEAD + 1]])
    verdict = gpu_judge.grade(honest.source, honest.exercise)
    _is_right(verdict, honest)
    assert [finding for finding in verdict.findings if finding.kind in ("rule", "clock")] == []
    if honest.fast:
        assert (verdict.status, verdict.points) == ("passed", verdict.max_points), verdict.gates


def _is_right(verdict: Verdict, honest: Honest) -> None:
    assert verdict.failure is None, (verdict.failure, verdict.log)
    assert [case.name for case in verdict.cases if not case.passed] == []
    assert verdict.points >= find(honest.exercise).correctness_points


def test_the_corpus_is_large_and_of_one_form() -> None:
    """Enough files for each exercise, in the folder of the exercise that the header names, and no style twice."""
    counts = Counter(honest.exercise for honest in _ALL)
    assert not {exercise: counts[exercise] for exercise, least in _LEAST.items() if counts[exercise] < least}
    assert [honest.name for honest in _ALL if honest.name.split("/")[0] != honest.exercise] == []
    assert [style for style, count in Counter(honest.style for honest in _ALL).items() if count > 1] == []
    assert len(_ALL) == len(list(SUBMISSIONS.rglob("*.py")))


@pytest.mark.parametrize("honest", **_named(_ALL))
def test_it_can_be_graded(honest: Honest) -> None:
    """No file is refused for its text, the ones for a GPU included."""
    assert refuse(honest.source, find(honest.exercise)) is None


def test_line_ends_reach_the_judge_as_they_are() -> None:
    """A file with the line ends of Windows is read with them, and its header as well."""
    (windows,) = [honest for honest in _ALL if honest.name == "vector_add/windows_line_ends.py"]
    assert "\r\n" in windows.source
    assert "\n" not in windows.source.replace("\r\n", "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# runs: anywhere\n", ""),
        ("anywhere", "nowhere"),
        ("passes", "perhaps"),
        ("# gates", "# gate"),
        ("# runs", "# honest"),
    ],
)
def test_a_header_that_is_not_complete_is_an_error(tmp_path: Path, old: str, new: str) -> None:
    """A line that is missing, unknown, there twice, or of no known value is named together with the file."""
    path = tmp_path / "plain.py"
    path.write_text(_HEADER + "# needs: numpy, json\n# a comment: no part of it\n")
    assert read(path).needs == ("numpy", "json")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(HeaderError, match=r"plain\.py"):
        read(path)


@pytest.mark.parametrize(("needs", "lacks"), [("json", ""), ("json, no_such_module.at_all", "no_such_module.at_all")])
def test_what_a_machine_lacks_is_named(tmp_path: Path, needs: str, lacks: str) -> None:
    """A module that cannot be imported here is what the test on a GPU gives as its reason to skip."""
    path = tmp_path / "plain.py"
    path.write_text(f"{_HEADER}# needs: {needs}\n")
    assert read(path).lacks == lacks
