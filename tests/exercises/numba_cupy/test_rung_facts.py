"""Requirements of the rungs on compiled kernels."""

import pytest

from grader.exercises import find
from grader.exercises.numba_cupy.ladder_rungs import OF_COMPILED

_GOOD = {"float64": 12, "fast_sines": 22, "bound": 1, "capped": 1, "double": 0, "per_sine": 12}


@pytest.mark.parametrize(
    ("exercise", "bad"),
    [
        ("ls_numba_typed", {"float64": 190}),
        ("ls_numba_cached", {"compiled_again": 1}),
        ("ls_numba_fastmath", {"fast_sines": 0}),
        ("ls_numba_registers", {"capped": 0}),
        ("ls_numba_unsigned", {"per_sine": 27}),
        ("ls_numba_unsigned", {"fast_sines": 0}),
        ("ls_cupy_typed", {"float64": 79}),
        ("ls_cupy_fastmath", {"fast_sines": 0}),
        ("ls_cupy_launch_bounds", {"bound": 0}),
    ],
)
def test_a_rung_names_what_is_missing(exercise, bad):
    """Good facts pass, facts that lack what the rung asks for give a sentence, and no facts say nothing."""
    check = find(exercise).of_compiled
    assert check is OF_COMPILED[exercise]
    assert check([_GOOD]) == check([]) == ""
    assert check([_GOOD | bad]) != ""


def test_a_kernel_of_doubles_may_have_float64():
    """Only kernels without float64 arguments count."""
    assert find("ls_numba_typed").of_compiled([_GOOD, _GOOD | {"float64": 300, "double": 1}]) == ""
