"""Mistakes of an exercise's author that are found when its module is loaded."""

import math
from dataclasses import replace

import pytest

from grader.exercise import FILLS, Baseline, Gate, Suspect
from grader.exercises import PACKAGED
from grader.exercises.found import faults
from grader.judge.checking import buffers

SOFTMAX = PACKAGED["softmax"]
_FACTOR = 2.0


def _doubled(x, out):
    out.copy_(x * _FACTOR)


def _stands_alone(x: "Tensor", out):  # noqa: F821
    import torch.nn.functional as functional

    def inner(value):
        return functional.relu(value)

    try:
        total = sum(inner(row) for row in x)
    except ValueError as error:
        raise RuntimeError(str(error)) from error
    out.copy_(total)


@pytest.mark.parametrize("exercise", PACKAGED.values(), ids=PACKAGED)
def test_the_packages_exercises_have_no_fault(exercise):
    """All names exist, and all baselines stand alone."""
    assert faults(exercise) == []


def test_the_fills_are_those_that_the_judge_can_draw():
    """An unknown fill is found before the judge starts."""
    assert set(buffers.FILLS) == set(FILLS)


def _with_case(**changes):
    first, *rest = SOFTMAX.cases
    return {"cases": (replace(first, **changes), *rest)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (_with_case(fill="heavey"), "is 'heavey', which does not exist: did you mean 'heavy'?"),
        (_with_case(fill="normal|x"), "is 'x', which does not exist: it can be one of: 'normal', 'heavy'"),
        (_with_case(name=SOFTMAX.cases[1].name), "`cases` has the name"),
        (
            {"gates": (Gate("torhc", 1.0, 1, ()),)},
            "the baseline of a gate is 'torhc', which does not exist",
        ),
        ({"gates": (Gate("torch", 1.0, 1, ("4096 x 4096",)),)}, "a case of the gate against 'torch' is '4096 x 4096'"),
        ({"suspects": (Suspect("s", lambda a: None, spares=("none",)),)}, "`spares` of suspect 1 is 'none'"),
        ({"baselines": (Baseline("torch", "torch", _doubled),)}, "the baseline 'torch' uses '_FACTOR' of its module"),
        ({"harness": _doubled}, "the harness uses '_FACTOR'"),
        ({"measure": _doubled}, "the measure uses '_FACTOR'"),
        (
            {"baselines": (Baseline("torch", "torch", lambda x, out: None),)},
            "the baseline 'torch' must be a plain function",
        ),
        ({"baselines": (Baseline("torch", "torch", math.sin),)}, "the baseline 'torch' must be a plain function"),
    ],
)
def test_a_fault_has_the_field_the_value_and_a_better_one(changes, said):
    """The author reads one sentence, not a traceback of the judge."""
    assert said in " ".join(faults(replace(SOFTMAX, **changes)))


def test_imports_inner_functions_and_caught_errors_are_a_functions_own_names():
    """Only names that a worker lacks are faults."""
    alone = Baseline("torch", "torch", _stands_alone)
    assert not [each for each in faults(replace(SOFTMAX, baselines=(alone, *SOFTMAX.baselines[1:]))) if "uses" in each]


def test_a_drawn_exercise_needs_no_fill():
    """Its `draw` makes the inputs of every case."""
    assert faults(replace(SOFTMAX, draw=lambda case, source, machine: {}, **_with_case(fill="none"))) == []
