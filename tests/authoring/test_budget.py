"""`grader exercise budget`: the budget is ten times the error of the reference."""

from dataclasses import replace

import pytest
import torch

from grader.authoring.budget import CaseError, MeasuredBudget, errors_of, measure_budget
from grader.authoring.budget import _budget as budget_of
from grader.authoring.stubs import solution
from grader.errors import GraderError
from grader.exercise import Budget
from grader.exercises import find
from grader.judge.bench import Bench


@pytest.fixture(scope="module")
def bench():
    """A bench without a GPU."""
    bench = Bench("simulator")
    yield bench
    bench.close()


def silent(*_):
    """No progress."""


def few_cases(exercise_id, count=2, **changes):
    """An exercise with its first cases only."""
    exercise = find(exercise_id)
    return replace(exercise, simulator_cases=exercise.simulator_cases[:count], **changes)


def test_one_rounding_of_a_float32_gives_half_a_unit_in_the_last_place(bench):
    """The sum of two float32 is rounded once: its relative error is at most 2^-24."""
    errors = errors_of(bench, solution("vector_add"), few_cases("vector_add", 4), silent)
    assert 2**-27 < max(each.relative for each in errors) <= 2**-24
    assert 10 * 2**-27 < budget_of(errors).relative < 1e-6


def test_a_reference_that_is_off_gets_a_budget_that_covers_it_ten_times(bench):
    """An error of 1e-3 in every element needs a budget of 1e-2."""
    source = solution("vector_add") + "\n\n_sum = vector_add\n\n\ndef vector_add(x, y, out):\n    _sum(x, y, out)\n"
    errors = errors_of(bench, source + "    out.mul_(1.001)\n", few_cases("vector_add"), silent)
    assert 9e-3 < budget_of(errors).relative <= 2e-2


def test_small_elements_that_are_off_ask_for_an_absolute_budget(bench):
    """An error of 1e-4 everywhere does not depend on the size of the elements."""
    source = solution("vector_add") + "\n\n_sum = vector_add\n\n\ndef vector_add(x, y, out):\n    _sum(x, y, out)\n"
    errors = errors_of(bench, source + "    out.add_(1e-4)\n", few_cases("vector_add"), silent)
    wanted = budget_of(errors)
    for size in (0.0, 1e-3, 1.0, 10.0):
        assert wanted.absolute + wanted.relative * size > 0.9 * 1e-3 * (size <= 1.0)
    assert wanted.absolute < 3e-3


def test_values_that_are_moved_get_no_budget_at_all(bench):
    """A transpose is exact."""
    errors = errors_of(bench, solution("transpose"), few_cases("transpose"), silent)
    assert budget_of(errors) == Budget(0.0, 0.0)


def test_a_reference_that_is_not_finite_is_refused(bench):
    """A wider budget would not make it right."""
    source = "def vector_add(x, y, out):\n    out.fill_(float('nan'))\n"
    with pytest.raises(GraderError, match=r"'out' of .* not finite where"):
        errors_of(bench, source, few_cases("vector_add"), silent)


def test_a_reference_that_fails_says_why(bench):
    """The message is the judge's."""
    with pytest.raises(GraderError, match=r"reference of 'vector_add' fails: .*KeyError"):
        errors_of(bench, "def vector_add(x, y, out):\n    raise KeyError('a')\n", few_cases("vector_add"), silent)


@pytest.mark.parametrize(
    ("errors", "wanted"),
    [
        ([CaseError("a", 2e-6, 2.1e-7, 0.0, False)], Budget(1e-30, 3e-6)),
        ([CaseError("a", 2e-6, 2e-7, 1.5e-9, False), CaseError("b", 1.0, 1.0, 1.0, False, True)], Budget(2e-8, 2e-6)),
        ([CaseError("a", 0.4, 0.1, 0.2, True)], Budget(0.5, 0.0)),
    ],
)
def test_the_budget_is_rounded_up_to_one_digit(errors, wanted):
    """A case with its own budget does not count, and integers are right or wrong."""
    assert budget_of(errors) == wanted


def test_the_line_can_be_pasted():
    """The line evaluates to the budget, and a simulated budget says that a GPU rounds differently."""
    measured = MeasuredBudget(
        "a", "the simulator", 3, Budget(0.0, 1.0), Budget(2e-9, 5e-6), (CaseError("c", 0, 0, 0, False),)
    )
    (line,) = [each for each in measured.to_text().splitlines() if each.strip().startswith("budget=")]
    assert eval(line.strip().removeprefix("budget=").rstrip(","), {"Budget": Budget}) == measured.budget
    assert "run this again" in measured.to_text()
    assert "run this again" not in replace(measured, device="NVIDIA H100").to_text()


@pytest.mark.parametrize("own_budget", [False, True])
def test_a_case_that_widens_the_budget_of_all_is_named(own_budget):
    """The author may want milder inputs there. A case with its own budget does not widen the others'."""
    cases = [CaseError("tame", 3e-7, 2e-7, 1e-8, False), CaseError("wild", 2e-5, 3e-5, 1e-5, False, own_budget)]
    measured = MeasuredBudget("a", "the simulator", 3, Budget(0.0, 1.0), budget_of(cases), tuple(cases))
    assert ("due to wild" in measured.to_text()) != own_budget
    assert "due to tame" not in measured.to_text()


def test_answers_that_are_times_have_no_such_budget():
    """A time on this machine has no rounding."""
    with pytest.raises(GraderError, match="are times on this machine"):
        measure_budget("time_gpu", device="simulator")


def test_a_tenth_of_the_budget_covers_what_was_measured(bench):
    """The budget for softmax keeps this promise for each element of newly drawn inputs."""
    exercise = few_cases("softmax", 2)
    measured = budget_of(errors_of(bench, solution("softmax"), exercise, silent))
    x = torch.randn(3, 128)
    error = (torch.softmax(x, 1).double() - exercise.oracle({"x": x.double()})).abs()
    assert (error <= measured.absolute + measured.relative * torch.softmax(x.double(), 1)).all()
