"""Exercises whose entry point does not take the arrays directly: a harness calls it, with data of their own."""

from dataclasses import replace

import pytest

from grader.errors import JudgeStopped
from grader.exercise import Array, Case, Suspect
from grader.exercises import find
from grader.judge.arbiter import Arbiter

pytestmark = pytest.mark.timeout(240)


def _returns(entry, x, y, out):
    out.copy_(entry(x, y))


def _ones_and_twos(case, source, machine):
    import torch

    return {"x": torch.ones(case.arrays[0].shape), "y": torch.full(case.arrays[1].shape, 2.0)}


@pytest.fixture(scope="module")
def arbiter():
    arbiter = Arbiter("simulator")
    yield arbiter
    arbiter.close()


@pytest.fixture
def exercise():
    """`vector_add`, asked as a function that returns its result."""
    cases = tuple(Case(f"{n}", (Array("x", (n,)), Array("y", (n,)), Array("out", (n,), role="out"))) for n in (3, 1000))
    return replace(find("vector_add"), harness=_returns, parameters=("x", "y"), simulator_cases=cases)


def test_a_function_that_returns_is_graded_through_its_harness(arbiter, exercise):
    """Its return value is copied into the arbiter's buffer and checked there."""
    assert arbiter.grade("def vector_add(x, y): return x + y", exercise).points == 3
    wrong = arbiter.grade("def vector_add(x, y): return x - y", exercise)
    assert wrong.points == 0
    assert wrong.cases[0].mismatch is not None


def test_an_error_names_the_line_of_the_submission(arbiter, exercise):
    """The harness belongs to the judge; messages are about the learner's cell."""
    verdict = arbiter.grade("def vector_add(x, y):\n    return x + nothing", exercise)
    assert verdict.failure.kind == "exception"
    assert verdict.failure.line == 2


def test_an_exercise_may_draw_its_own_inputs(arbiter, exercise):
    """The arrays hold what the exercise says, and the oracle reads the same."""
    source = """
def vector_add(x, y):
    assert (x == 1).all() and (y == 2).all()
    return x + y
"""
    assert arbiter.grade(source, replace(exercise, draw=_ones_and_twos)).points == 3
    assert arbiter.grade(source, exercise).points == 0


def _disturbed(x, y):
    """The right answer, but for the first time that it is asked in a process."""
    seen = globals().setdefault("_seen", [])
    seen.append(1)
    return x + y + (1.0 if len(seen) == 1 else 0.0)


def _nobody_knows(inputs):
    return inputs["x"] * float("nan")


@pytest.fixture
def measured(exercise):
    """The same, where what is expected is measured, and the oracle knows nothing."""
    cases = tuple(replace(case, measured=True, tries=3) for case in exercise.simulator_cases)
    return replace(exercise, simulator_cases=cases, oracle=_nobody_knows, measure=_disturbed)


def test_what_is_expected_may_be_measured(arbiter, measured):
    """A trusted worker's answer on the same inputs counts, and a disturbed one costs nobody a point."""
    arbiter.bench.drop_baselines()
    assert arbiter.grade("def vector_add(x, y): return x + y", measured).points == 3
    assert arbiter.grade("def vector_add(x, y): return x + 2 * y", measured).points == 0
    arbiter.bench.drop_baselines()
    once = tuple(replace(case, tries=1) for case in measured.simulator_cases)
    assert arbiter.grade("def vector_add(x, y): return x + y", replace(measured, simulator_cases=once)).points == 0


def test_what_is_measured_never_lies_where_a_submission_looks(arbiter, measured):
    """The right answers are written to memory that only trusted workers map; the outputs keep what they held."""
    arbiter.bench.drop_baselines()
    layout = arbiter.bench.buffers.lay(measured.simulator_cases[1])
    arbiter.bench.buffers.fill(layout)
    arbiter.bench.buffers.poison(layout)
    ((answer,),) = arbiter.bench.measured(layout, measured)
    inputs = [arbiter.bench.buffers._private(layout.launches[0][name]) for name in ("x", "y")]
    assert (answer - sum(inputs).double() - 1).abs().max() < 1e-5
    assert arbiter.bench.buffers.unwritten(layout)
    assert "own" not in arbiter.bench.buffers.arenas_for(trusted=False)


def _fails(x, y):
    raise ValueError("the measurement")


def test_a_measurement_that_fails_is_not_the_submissions_fault(arbiter, measured):
    """Nothing is graded: nobody knows the right answer."""
    arbiter.bench.drop_baselines()
    with pytest.raises(JudgeStopped, match="Measuring the answer"):
        arbiter.grade("def vector_add(x, y): return x + y", replace(measured, measure=_fails))


def test_a_suspect_sees_what_was_expected_and_what_came(arbiter, measured):
    """A bug that is a factor, or a wide band, can be named without knowing the right answer beforehand."""
    import torch

    factor = Suspect("A thousand times too large.", lambda a: 1000 * a["expected"], relative=0.1)
    small = Suspect("Far too small.", lambda a: torch.where(a["got"].abs() < a["expected"].abs() / 2, a["got"], 9e9))
    named = replace(measured, suspects=(factor, small))
    for times, sentence in ((1003, factor.sentence), (0.01, small.sentence), (3, "")):
        verdict = arbiter.grade(f"def vector_add(x, y): return {times} * (x + y)", named)
        assert next(case for case in verdict.cases if case.mismatch).mismatch.suspect == sentence
