"""Evidence about a submission: claims of any size, and judges that are asked at the same time."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from grader.authoring.stubs import solution
from grader.bottleneck.evidence import Evidence
from grader.errors import JudgeStopped
from grader.judge.inquiry import trimmed
from grader.judge.service import evidence_of
from tests.judge.submissions import VECTOR_ADD

_HUGE = f"""
import grader.worker.evidence as made
made.gather = lambda call, timed=False: {{"launches": [{{"kernel": "x" * 7_000_000, "count": 3}}], "operations": []}}
{VECTOR_ADD}"""


def test_a_claim_of_megabytes_is_cut_off(quick_judge: Any) -> None:
    """Two of them are more than one message holds; what is left is evidence like any other."""
    evidence = quick_judge.evidence(_HUGE, "vector_add")
    assert [launch.count for run in evidence.runs for launch in run.launches] == [3] * len(evidence.runs)
    assert evidence.runs


def test_beside_a_gpu_the_simulator_compiles_no_triton_kernel(quick_judge: Any) -> None:
    """The GPU tells what they compile to, and a kernel that spills can take the compiler half a minute."""
    alone, beside = (quick_judge.evidence(VECTOR_ADD, "vector_add", beside_gpu=gpu) for gpu in (False, True))
    assert [code.kernel for code in alone.codes] == ["kernel"]
    assert beside.codes == ()
    assert [run.case for run in beside.runs] == [run.case for run in alone.runs]


def test_an_exercise_without_cases_for_the_simulator_has_no_runs(quick_judge: Any) -> None:
    assert quick_judge.evidence("def time_gpu(function):\n    return 1.0\n", "time_gpu").runs == ()


def test_attention_is_watched_on_a_case_of_several_tiles(quick_judge: Any) -> None:
    """Its first case has one query and one key. The tensors of a call have numbers, and kernels may rename them."""
    evidence = quick_judge.evidence(solution("attention"), "attention")
    assert [run.case.name for run in evidence.runs] == [
        "1 × 1 × 64", "1 × 320 × 64, causal, one key far above the rest"
    ]  # fmt: skip
    accesses = evidence.runs[-1].launches[0].accesses
    assert sorted({each.tensor for each in accesses}) == [1, 2, 3, 4]


def test_an_empty_tensor_moves_nothing(quick_judge: Any) -> None:
    """The simulator fills it with NaN, which a GPU does not do."""
    made = VECTOR_ADD.replace("n = out", "import torch\n    n = torch.empty(out.shape, device=out.device)", 1)
    assert made != VECTOR_ADD
    evidence = quick_judge.evidence(made, "vector_add")
    assert evidence.runs
    assert all(run.operations == () for run in evidence.runs)


def test_long_lists_texts_and_deep_nesting_are_cut_off() -> None:
    """Numbers and short texts stay as they are."""
    deep: Any = 1
    for _ in range(50):
        deep = [deep]
    cut = trimmed({"lines": list(range(10_000)), "name": "x" * 10_000, "deep": deep, "us": 1.5, "none": None})
    assert len(cut["lines"]) == 100
    assert len(cut["name"]) == 200
    assert str(cut["deep"]).count("[") < 10
    assert (cut["us"], cut["none"]) == (1.5, None)


class _Meeting:
    """A judge that answers only once another one is asked as well."""

    def __init__(self, barrier: threading.Barrier, fails: bool = False) -> None:
        self.barrier, self.fails, self.interrupted = barrier, fails, False
        self.watched: Any = "never asked"

    def evidence(self, source: str, exercise: str, *, beside_gpu: bool, progress: Any = None) -> Evidence:
        self.watched, self.beside_gpu = progress, beside_gpu
        self.barrier.wait(timeout=60)
        if self.fails:
            raise JudgeStopped("The judge's process ended.")
        return Evidence(simulated=True)

    def interrupt(self) -> None:
        self.interrupted = True


def test_judges_are_asked_at_the_same_time() -> None:
    """Only the last one reports its progress: two would take turns on one line. Each knows that it is not alone."""
    barrier = threading.Barrier(2)
    judges: list[Any] = [_Meeting(barrier), _Meeting(barrier)]
    assert len(evidence_of(judges, "", "vector_add", progress=print)) == 2
    assert [judge.watched for judge in judges] == [None, print]
    assert [judge.beside_gpu for judge in judges] == [True, True]


def test_if_one_judge_fails_both_end() -> None:
    """The caller gets its error."""
    barrier = threading.Barrier(2)
    judges: list[Any] = [_Meeting(barrier, fails=True), _Meeting(barrier)]
    with pytest.raises(JudgeStopped):
        evidence_of(judges, "", "vector_add")
    assert all(judge.interrupted for judge in judges)
