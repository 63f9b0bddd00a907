"""The reference solutions are timed on arrays with the judge's layout."""

import pytest
import torch

from benchmarks.kernels import cases_of
from grader.exercise import Array
from grader.exercises import EXERCISES
from grader.explore.profiling.counted_call import laid_out


@pytest.mark.parametrize(
    ("array", "strides"),
    [
        (Array("x", (4, 6)), (6, 1)),
        (Array("x", (4, 6), row_padding=2), (8, 1)),
        (Array("x", (4, 6), transposed=True), (1, 4)),
        (Array("x", (4, 6), "float16", row_padding=2, transposed=True), (1, 6)),
    ],
)
def test_an_array_keeps_its_values_and_has_the_strides_of_its_case(array, strides):
    """Some kernels are about padded rows: without the padding they would be another case."""
    values = torch.arange(24).reshape(4, 6).to(getattr(torch, array.dtype))
    found = laid_out(array, values)
    assert found.stride() == strides
    assert torch.equal(found, values)


def test_a_gates_cases_are_timed():
    """The bench times them with the plot cases, and no name has two sizes."""
    for exercise in EXERCISES.values():
        timed = cases_of(exercise)
        assert {name for gate in exercise.gates for name in gate.cases} <= set(timed)
        assert all(timed[case.name].arrays == case.arrays for case in (*exercise.plot_cases, *exercise.timed_cases))
