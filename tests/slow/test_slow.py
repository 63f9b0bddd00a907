"""Right but slow submissions: an explanation names the cause; fast work gets no false cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grader.authoring.stubs import solution
from grader.bottleneck.diagnosis import causes
from grader.exercises import EXERCISES, find
from tests.honest import corpus as honest
from tests.slow.corpus import HeaderError, Slow, corpus, read

pytestmark = pytest.mark.timeout(300)

_ALL = corpus()
_GATED = [exercise for exercise in EXERCISES.values() if exercise.gates]
_FAST = [each for each in honest.corpus() if each.fast and each.runs == "anywhere" and find(each.exercise).gates]


def _found(judge: Any, source: str, exercise: str) -> list[str]:
    """The kinds of cause that the simulator's evidence supports, the largest first."""
    evidence = judge.evidence(source, exercise)
    if not evidence.runs:  # on a busy machine a call may exceed its limit
        evidence = judge.evidence(source, exercise)
    return [cause.kind for cause in causes(find(exercise), source, evidence)]


@pytest.mark.parametrize("slow", [each for each in _ALL if each.named], ids=lambda each: each.name)
def test_without_a_gpu_the_cause_is_among_the_first_two(quick_judge: Any, slow: Slow) -> None:
    """The header of the file says which cause that is."""
    assert slow.cause in _found(quick_judge, slow.source, slow.exercise)[:2]


def test_without_a_gpu_at_least_half_of_the_causes_are_named() -> None:
    """The header says which are; the test above checks it."""
    assert 2 * sum(each.named for each in _ALL) >= len(_ALL)


@pytest.mark.parametrize("exercise", [each.id for each in _GATED])
def test_a_reference_has_no_cause(quick_judge: Any, exercise: str) -> None:
    """The solution in the notebook passes every gate."""
    assert _found(quick_judge, solution(exercise), exercise) == []


@pytest.mark.parametrize("submission", _FAST, ids=lambda each: each.name)
def test_honest_work_that_passes_its_gates_has_no_cause(quick_judge: Any, submission: honest.Honest) -> None:
    """As far as it runs in the simulator."""
    if submission.lacks:
        pytest.skip(f"needs {submission.lacks}")
    if "load_inline" in submission.source and "no_implicit_headers" not in submission.source:
        pytest.skip("takes a minute to build with PyTorch's headers, as tests/honest does")
    assert _found(quick_judge, submission.source, submission.exercise) == []


@pytest.mark.parametrize("header", ["", "# slow: a\n", "# cause: b\n", "# slow: a\n# cause: b\n# without_a_gpu: no\n"])
def test_a_file_says_what_it_is(tmp_path: Path, header: str) -> None:
    """A header with a missing or a wrong line is rejected."""
    path = tmp_path / "some.py"
    path.write_text(header + "\nimport torch\n")
    with pytest.raises(HeaderError):
        read(path)
