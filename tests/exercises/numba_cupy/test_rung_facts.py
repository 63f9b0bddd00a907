"""Requirements of the rungs on compiled kernels."""

import pytest

from grader.exercises import find
from grader.exercises.numba_cupy.ladder_compiled import OF_COMPILED

_GOOD = {"float64": 12, "reductions": 4, "fast_sines": 22, "bound": 1, "capped": 32, "double": 0, "per_sine": 12}


@pytest.mark.parametrize(
    ("exercise", "bad"),
    [
        ("ls_numba_typed", {"float64": 190}),
        ("ls_numba_cached", {"compiled_again": 1}),
        ("ls_numba_fastmath", {"fast_sines": 0}),
        ("ls_numba_typed", {"float64": 18}),
        ("ls_numba_typed", {"float64": 31, "reductions": 0}),
        ("ls_numba_registers", {"capped": 0}),
        ("ls_numba_registers", {"capped": 16}),
        ("ls_numba_registers", {"capped": 32, "double": 1}),
        ("ls_numba_registers", {"fast_sines": 0}),
        ("ls_numba_unsigned", {"per_sine": 27}),
        ("ls_numba_unsigned", {"fast_sines": 0}),
        ("ls_cupy_typed", {"float64": 79}),
        ("ls_cupy_fastmath", {"fast_sines": 0}),
        ("ls_cupy_fatbin", {"fast_sines": 0}),
        ("ls_cupy_launch_bounds", {"bound": 0}),
    ],
)
def test_a_rung_names_what_is_missing(exercise, bad):
    """Good facts pass, facts that lack what the rung asks for give a sentence, and no facts say nothing."""
    check = find(exercise).of_compiled
    assert check is OF_COMPILED[exercise]
    assert check([_GOOD]) == check([]) == ""
    assert check([_GOOD | bad]) != ""


def test_a_cell_may_load_a_module_twice_for_each_call():
    """Once more is a module that each call loads."""
    check = find("ls_cupy_cached").of_compiled
    assert check([_GOOD, *[{"loaded_again": 1}] * 2]) == ""
    assert "again" in check([_GOOD, *[{"loaded_again": 1}] * 3])


def test_each_type_needs_its_launch_bounds():
    """A second kernel of the same type may have none."""
    check = find("ls_cupy_launch_bounds").of_compiled
    assert check([_GOOD, _GOOD | {"double": 1}, _GOOD | {"bound": 0}]) == ""
    assert "no float64 kernel" in check([_GOOD, _GOOD | {"double": 1, "bound": 0}])


def test_a_kernel_of_doubles_may_have_float64():
    """Only kernels without float64 arguments count."""
    assert find("ls_numba_typed").of_compiled([_GOOD, _GOOD | {"float64": 300, "double": 1}]) == ""
