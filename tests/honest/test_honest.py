"""Grades the honest corpus: every style gets its points and no finding."""

from __future__ import annotations

import re
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
_AHEAD = 8  # files announced to the judge after the current one
_NEEDS_THE_SYSTEM = re.compile(r"load_inline|RawKernel|RawModule|numba|thread|subprocess|open\(|\bos\b|tempfile")
_HEADER = "# honest: plain\n# exercise: vector_add\n# runs: anywhere\n# gates: passes\n"


def _named(chosen: list[Honest]) -> dict[str, Any]:
    return {"argvalues": chosen, "ids": [honest.name for honest in chosen]}


@pytest.mark.parametrize("honest", **_named([honest for honest in _ALL if honest.runs == "anywhere"]))
def test_it_gets_all_reachable_points_in_the_simulator(request: pytest.FixtureRequest, honest: Honest) -> None:
    """Every case is right, without a failure or finding. Work that starts compilers or threads, or opens files, runs in
    the sandbox. The rest needs nothing that a sandbox could refuse; on a GPU all of it runs in one.
    """
    _skip_if_something_is_missing(honest)
    judge = request.getfixturevalue("simulator_judge" if _NEEDS_THE_SYSTEM.search(honest.source) else "quick_judge")
    verdict = judge.grade(honest.source, honest.exercise)
    _is_right(verdict, honest)
    assert (verdict.status, verdict.points) == ("passed", verdict.reachable_points), verdict
    assert verdict.findings == ()


@pytest.mark.gpu
@pytest.mark.parametrize("honest", **_named(_ALL))
def test_it_gets_its_points_on_a_gpu(gpu_judge: Judge, honest: Honest) -> None:
    """Every case is right, without findings on rules or clocks; a fast submission gets full marks."""
    _skip_if_something_is_missing(honest)
    following = _ALL[_ALL.index(honest) + 1 :]
    gpu_judge.expect([(next_.source, next_.exercise) for next_ in [honest, *following][: _AHEAD + 1]])
    verdict = gpu_judge.grade(honest.source, honest.exercise)
    _is_right(verdict, honest)
    assert [finding for finding in verdict.findings if finding.kind in ("rule", "clock")] == []
    if honest.fast:
        assert (verdict.status, verdict.points) == ("passed", verdict.max_points), verdict.gates


def _skip_if_something_is_missing(honest: Honest) -> None:
    if honest.lacks:
        pytest.skip(f"{honest.lacks} cannot be imported here")


def _is_right(verdict: Verdict, honest: Honest) -> None:
    assert verdict.failure is None, (verdict.failure, verdict.log)
    assert [case.name for case in verdict.cases if not case.passed] == []
    assert verdict.points >= find(honest.exercise).correctness_points


def test_the_corpus_is_large_and_consistent() -> None:
    """Each exercise has enough files, each file is in its exercise's folder, and no style occurs twice."""
    counts = Counter(honest.exercise for honest in _ALL)
    assert not {exercise: counts[exercise] for exercise, least in _LEAST.items() if counts[exercise] < least}
    assert [honest.name for honest in _ALL if honest.name.split("/")[0] != honest.exercise] == []
    assert [style for style, count in Counter(honest.style for honest in _ALL).items() if count > 1] == []
    assert len(_ALL) == len(list(SUBMISSIONS.rglob("*.py")))


@pytest.mark.parametrize("honest", **_named(_ALL))
def test_it_can_be_graded(honest: Honest) -> None:
    """No file is refused because of its text, including those for a GPU."""
    assert refuse(honest.source, find(honest.exercise)) is None


def test_line_ends_reach_the_judge_unchanged() -> None:
    """A file with Windows line ends keeps them, and its header is still read."""
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
    """The error names the file and the line that is missing, unknown or repeated, or has an unknown value."""
    path = tmp_path / "plain.py"
    path.write_text(_HEADER + "# needs: numpy, json\n# a comment: no part of it\n")
    assert read(path).needs == ("numpy", "json")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(HeaderError, match=r"plain\.py"):
        read(path)


@pytest.mark.parametrize(("needs", "lacks"), [("json", ""), ("json, no_such_module.at_all", "no_such_module.at_all")])
def test_a_missing_module_is_named(tmp_path: Path, needs: str, lacks: str) -> None:
    """The GPU test gives the missing module as its reason to skip."""
    path = tmp_path / "plain.py"
    path.write_text(f"{_HEADER}# needs: {needs}\n")
    assert read(path).lacks == lacks


def test_a_function_that_was_removed_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton 3.9 still has `tl.make_block_ptr`, which raises an error."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    text = "def gone():\n    raise NotImplementedError('Block pointers have been removed')\ndef there():\n    pass\n"
    (tmp_path / "newer_triton.py").write_text(text)
    path = tmp_path / "plain.py"
    path.write_text(f"{_HEADER}# needs: newer_triton.there, newer_triton.gone\n")
    assert read(path).lacks == "newer_triton.gone"
