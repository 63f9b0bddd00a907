"""Exercises whose entry point does not take the arrays as they are: a harness stands between, and data of their own."""

from dataclasses import replace

import pytest

from grader.exercise import Array, Case
from grader.exercises import find
from grader.judge.arbiter import Arbiter

pytestmark = pytest.mark.timeout(240)


def _returns(entry, x, y, out):
    out.copy_(entry(x, y))


def _ones_and_twos(case, source):
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
    cases = tuple(
        Case(f"{n}", (Array("x", (n,)), Array("y", (n,)), Array("out", (n,), role="out"))) for n in (3, 1000)
    )
    return replace(find("vector_add"), harness=_returns, parameters=("x", "y"), simulator_cases=cases)


def test_a_function_that_returns_is_graded_through_its_harness(arbiter, exercise):
    """What it returns is copied into the arbiter's buffer and checked there."""
    assert arbiter.grade("def vector_add(x, y): return x + y", exercise).points == 3
    wrong = arbiter.grade("def vector_add(x, y): return x - y", exercise)
    assert wrong.points == 0
    assert wrong.cases[0].mismatch is not None


def test_an_error_names_the_line_of_the_submission(arbiter, exercise):
    """The harness is ours; what is said is of the learner's cell."""
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
