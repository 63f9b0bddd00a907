"""The ladder's bench without a GPU: its rungs, their correct digits, and their kernels' registers."""

import re
from types import SimpleNamespace

import pytest
import torch

from benchmarks.ladder import LIBRARIES, both_at_once, correct_digits, never_compiled, numba_registers, rungs
from benchmarks.periods import of_this_machine
from grader.authoring.stubs import solution
from grader.exercises.numba_cupy.ladder_cases import draw, ladder_case, lombscargle
from grader.judge.checking.buffers import generator


def test_the_rungs_are_those_of_the_exercises_in_their_order():
    """Numba has six, and every named library has some."""
    names = ["baseline", "cached", "typed", "fastmath", "registers", "unsigned"]
    assert [rung.name for rung in rungs("numba")] == names
    assert all(rungs(library) for library in LIBRARIES)


@pytest.mark.parametrize(("error", "digits"), [(0.0, 17.0), (1e-3, 5.0), (1e-9, 11.0)])
def test_digits_are_of_the_highest_peak(error, digits):
    """An error of 0.001 at a peak of 100 leaves five digits, even if it is the error of a small value."""
    expected = torch.tensor([100.0, 0.01], dtype=torch.float64)
    got = expected + torch.tensor([0.0, error], dtype=torch.float64)
    assert correct_digits(got, expected) == pytest.approx(digits, abs=1e-3)


def test_nan_has_no_correct_digits():
    """The bench therefore rejects it."""
    expected = torch.ones(2, dtype=torch.float64)
    assert not correct_digits(expected * float("nan"), expected) > 4


def _kernel(**registers):
    return SimpleNamespace(overloads={f"array({name}, 1d, C)": SimpleNamespace(regs_per_thread=count)
                                      for name, count in registers.items()})  # fmt: skip


def test_registers_are_those_of_the_kernel_for_the_type():
    """The kernel is in the module itself, or in its dictionary of kernels."""
    lazy = SimpleNamespace(other=3, kernel=_kernel(float32=40, float64=66))
    cached = SimpleNamespace(kernels={"a": _kernel(float32=32), "b": _kernel(float64=64)})
    assert (numba_registers(lazy, "float64"), numba_registers(cached, "float32")) == (66, 32)
    assert numba_registers(SimpleNamespace(kernels={}), "float32") is None


def test_the_ways_without_a_kernel_agree(tmp_path):
    """These are SciPy, NumPy and torch, on a CPU."""
    drawn = draw(ladder_case(40, 200, "float64"), generator("cpu"), None)
    ways = of_this_machine(drawn, tmp_path)
    assert {"SciPy", "NumPy, the reference solution", "torch"} <= set(ways)
    expected = lombscargle(*drawn.values())
    for way in ways.values():
        assert torch.allclose(torch.as_tensor(way()), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rung", rungs("cupy"), ids=lambda rung: rung.name)
def test_a_rung_in_cupy_has_a_text_that_was_never_compiled(rung):
    """It is different each time, but only in the first line of its CUDA C++."""
    text = solution(rung.exercise.id)
    first, second = never_compiled(text), never_compiled(text)
    assert len({text, first, second}) == 3
    assert re.sub('r"""// [0-9a-f-]{36}\n', 'r"""\n', first) == text


def test_the_last_rung_calls_sine_and_cosine_together(judge):
    """It is a changed exercise: NVRTC compiles it, and its outputs are right."""
    (rung,) = (each for each in rungs("cupy") if each.change is both_at_once)
    text = both_at_once(solution(rung.exercise.id))
    assert text.count("sincos(w * t[j], &s, &c)") == 1
    verdict = judge.grade(text, rung.exercise.id)
    assert verdict.failure is None, verdict.failure
    assert all(case.passed for case in verdict.cases)
