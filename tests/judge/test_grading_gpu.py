"""The judge on a GPU: full points for the references, limits for everything else, and no harm done to the next."""

import pytest

from grader.authoring.stubs import solution, unsolved
from grader.exercises import EXERCISES
from tests.honest.corpus import corpus
from tests.judge.submissions import SOFTMAX, VECTOR_ADD, changed
from tests.judge.test_hostile import EARLY

ENDLESS = """    turn = tl.program_id(0)
    while turn >= 0:
        tl.store(out_ptr, 0.0)
        turn = turn * 0
"""

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.id)
def test_the_reference_solution_earns_every_point(gpu_judge, exercise):
    """Each gate is passed on the lower bound of its interval, not on doubt."""
    verdict = gpu_judge.grade(solution(exercise.id), exercise.id)
    assert verdict.status == "passed", verdict
    assert verdict.points == verdict.max_points == verdict.reachable_points
    assert {gate.outcome for gate in verdict.gates} <= {"passed"}, verdict.gates
    assert verdict.environment.gpu
    assert verdict.environment.copy_gbps


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.id)
def test_the_unsolved_exercise_earns_nothing_and_says_so(gpu_judge, exercise):
    """A stub is not written yet; that is all there is to say."""
    verdict = gpu_judge.grade(unsolved(exercise.id), exercise.id)
    assert verdict.points == 0
    assert verdict.failure is not None
    assert verdict.failure.kind == "not_written", verdict.failure


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (changed(VECTOR_ADD, "    n = out", "    x.zero_()\n    n = out"), "illegal_access"),
        (changed(VECTOR_ADD, "out_ptr + at", "out_ptr + (1 << 40) + at"), "illegal_access"),
        (changed(VECTOR_ADD, "tl.arange(0, BLOCK)", "tl.arange(0, BLOCK - 1)"), "compile"),
        (changed(VECTOR_ADD, "    n = out", "    while True: pass\n    n = out"), "timeout"),
        (changed(VECTOR_ADD, "    at = tl", ENDLESS + "    at = tl"), "timeout"),
        ("def vector_add(x, y, out): import os; os._exit(0)", "crash"),
        ("import torch\ndef vector_add(x, y, out): torch.empty(1 << 50, device='cuda')", "exception"),
    ],
    ids=["writes an input", "far outside", "compile error", "endless Python", "endless kernel", "exits", "memory"],
)
def test_every_way_to_die_is_a_verdict_and_the_next_is_graded_as_ever(gpu_judge, source, kind):
    """An illegal access, an endless kernel or an exit costs its own submission one message and nobody else anything."""
    verdict = gpu_judge.grade(source, "vector_add")
    assert verdict.failure is not None
    assert verdict.failure.kind == kind, verdict.failure
    assert verdict.points == 0
    after = gpu_judge.grade(VECTOR_ADD, "vector_add", timed=False)
    assert (after.status, after.points) == ("passed", 3)


def test_a_missing_mask_is_caught_by_the_guards(gpu_judge):
    """On a GPU, too, a store past the end of `out` is seen, though the memory there is mapped."""
    verdict = gpu_judge.grade(changed(SOFTMAX, "axis=0), mask=mask)", "axis=0))"), "softmax")
    mismatch = next(case.mismatch for case in verdict.cases if case.mismatch)
    assert mismatch.outside > 0
    assert verdict.points == 0


def test_a_slow_right_submission_keeps_its_points_for_being_right(gpu_judge):
    """One row after another, by the eager sequence: right, and too slow for either gate."""
    source = """
import torch
def softmax(x, out):
    row_max = x.max(dim=1, keepdim=True).values
    numerator = torch.exp(x - row_max)
    denominator = numerator.sum(dim=1, keepdim=True)
    torch.div(numerator, denominator, out=out)
"""
    verdict = gpu_judge.grade(source, "softmax")
    assert verdict.status == "failed"
    assert verdict.points == EXERCISES["softmax"].correctness_points
    assert {gate.outcome for gate in verdict.gates} == {"failed"}
    assert verdict.breakdown is not None
    assert verdict.breakdown.parts[0].label == "bytes that must move"
    assert 0.9 < sum(part.share for part in verdict.breakdown.parts) < 1.01
    eager = next(gate for gate in verdict.gates if gate.baseline == "eager")
    assert eager.ratio is not None
    assert 0.85 < eager.ratio < 1.15


def test_wrong_only_while_it_is_timed_is_wrong(gpu_judge):
    """A submission that stops working once it has been right often enough gets nothing: timed outputs are checked."""
    source = changed(
        VECTOR_ADD, "    n = out", "    global calls\n    calls += 1\n    if calls > 12: return\n    n = out"
    )
    verdict = gpu_judge.grade("calls = 0\n" + source, "vector_add")
    assert (verdict.status, verdict.points) == ("failed", 0)
    assert any("while timed" in case.name for case in verdict.cases)


@pytest.mark.parametrize(
    "exercise", [each for each in EXERCISES.values() if each.plot_cases], ids=lambda exercise: exercise.id
)
def test_a_plot_has_every_peer_at_every_size(gpu_judge, exercise):
    """`measure` times the submission and each baseline, torch.compile included, over all plot cases."""
    timings = gpu_judge.measure(solution(exercise.id), exercise.id)
    wanted = {(case.name, peer) for case in exercise.plot_cases
              for peer in ("submission", *(baseline.id for baseline in exercise.baselines))}  # fmt: skip
    assert {(timing.case, timing.peer) for timing in timings} == wanted
    assert all(0 < timing.low_us <= timing.high_us for timing in timings)
    assert all((timing.share_of_roofline or 0) < 1.2 for timing in timings)  # nothing is faster than memory allows


@pytest.mark.parametrize("name", ["own_stream", "two_streams_and_events"])
def test_joined_streams_are_timed_on_one_queue_with_a_head_start(gpu_judge, name):
    """On several they begin two milliseconds late, and what the host takes of a round would count."""
    (honest,) = [one for one in corpus() if one.name == f"vector_add/{name}.py"]
    verdict = gpu_judge.grade(honest.source, honest.exercise)
    assert "all its streams shared one queue" in verdict.clock
    assert "its calls came after" not in verdict.clock
    assert verdict.findings == ()
    assert verdict.points == verdict.max_points, verdict.gates


def test_an_answer_before_the_work_is_no_speed(gpu_judge):
    """A submission that lowers the flag itself and computes afterwards gets no point for a time that is not its own."""
    verdict = gpu_judge.grade(EARLY.replace("time.sleep(1.5)", "pass"), "vector_add")
    assert verdict.points == 0, verdict


def test_a_baseline_that_dies_is_not_the_submissions_fault():
    """The baselines' worker is started again, and the submission gets its points."""
    from grader.judge.arbiter import Arbiter

    arbiter = Arbiter("cuda")
    try:
        exercise = EXERCISES["vector_add"]
        assert arbiter.grade(VECTOR_ADD, exercise).points == 5
        arbiter.bench._baselines._process.kill()
        assert arbiter.grade(VECTOR_ADD, exercise).points == 5
    finally:
        arbiter.close()
