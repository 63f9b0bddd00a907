"""The reference solutions are timed on arrays with the judge's layout."""

import pytest
import torch

from benchmarks.kernels import _CORPUS, _WITHOUT, FASTEST, cases_of, laid_out, without
from grader.exercise import Array
from grader.exercises import EXERCISES


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


@pytest.mark.parametrize(("exercise", "part"), [(name, part) for name in _WITHOUT for part in _WITHOUT[name].values()])
def test_a_limit_is_the_faster_solution_without_one_part(exercise, part):
    """If the file changes so that the part is another, the bench would time the same kernel twice."""
    source = (_CORPUS / exercise / f"right_{FASTEST}.py").read_text("utf-8")
    shorter = without(source, part)
    compile(shorter, exercise, "exec")
    assert len(shorter) < len(source)
    with pytest.raises(ValueError, match="exactly once"):
        without(shorter, part)
