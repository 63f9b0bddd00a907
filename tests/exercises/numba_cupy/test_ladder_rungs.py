"""The Lomb–Scargle ladder: its oracle, inputs, error budgets, and the rungs that are baselines."""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.signal import lombscargle as of_scipy

from grader.exercises import EXERCISES
from grader.exercises.numba_cupy.ladder_cases import draw, ladder_case, lombscargle, power
from grader.exercises.numba_cupy.ladder_rungs import HALF
from grader.exercises.numba_cupy.ls_numba import NUMBA_BASELINE, NUMBA_FASTMATH, NUMBA_TYPED
from grader.judge.bench import ProblemSizes
from grader.judge.checking.buffers import generator
from grader.judge.checking.compare import suspected, within
from grader.judge.timing.clock import launches_for
from grader.protocol.arena import POISON_BYTE

_NUMBA = (NUMBA_BASELINE, NUMBA_TYPED, NUMBA_FASTMATH)


def _drawn(samples, frequencies, dtype="float32"):
    case = ladder_case(samples, frequencies, dtype)
    return case, draw(case, generator("cpu"), None)


@pytest.mark.parametrize(("samples", "frequencies"), [(24, 1), (33, 70), (300, 999)])
def test_the_oracle_is_scipys_unnormalised_power(samples, frequencies):
    """In float64, on drawn samples, even if they are split into several chunks."""
    _, drawn = _drawn(samples, frequencies, "float64")
    arrays = [drawn[name].numpy() for name in ("t", "y", "freqs")]
    assert np.allclose(lombscargle(*drawn.values()), of_scipy(*arrays), rtol=1e-9, atol=1e-11 * samples)


def test_what_is_taken_in_pieces_is_taken_whole():
    """More pairs than fit one chunk give the same powers."""
    _, drawn = _drawn(1024, 20_000, "float64")
    t, y, freqs = drawn.values()
    assert torch.allclose(lombscargle(t, y, freqs)[-7:], lombscargle(t, y, freqs[-7:]), rtol=1e-9)


def test_the_hidden_signal_is_the_highest_peak_and_as_high_as_its_amplitude_says():
    """A sine of amplitude 1 with N samples peaks near N / 4, at a frequency that changes between draws."""
    places = set()
    for _ in range(4):
        _, drawn = _drawn(1024, 4096)
        power = lombscargle(*(value.double() for value in drawn.values()))
        assert 0.8 < power.max() / (1024 / 4) < 1.25
        places.add(int(power.argmax()))
    assert len(places) > 1


def test_frequencies_are_exact_in_float32_and_evenly_spaced():
    """A million frequencies are exact in float32, because their errors would become phase errors."""
    _, drawn = _drawn(24, 1 << 20)
    freqs = drawn["freqs"].double()
    assert freqs[0] > 0.2
    assert len(set((freqs[1:] - freqs[:-1]).tolist())) == 1


def test_the_open_rungs_spacing_changes_and_is_never_the_ladders():
    """Code that assumes a power of two is wrong in every draw, but the frequencies are still exact."""
    spacings = set()
    for _ in range(20):
        drawn = EXERCISES["ls_open"].draw(ladder_case(24, 1 << 20), generator("cpu"), None)
        freqs = drawn["freqs"].double()
        found = set((freqs[1:] - freqs[:-1]).tolist())
        assert len(found) == 1
        spacings |= found
    assert len(spacings) > 1
    assert not any(math.log2(spacing).is_integer() for spacing in spacings)


def _in_float32(drawn, sine_of):
    """The power with each step rounded to float32 and sines and cosines from `sine_of`."""
    t, y, freqs = (drawn[name].numpy() for name in ("t", "y", "freqs"))
    phase = freqs[:, None] * t
    s, c = sine_of(phase)
    xc, xs, cc, ss, cs = ((one * other).cumsum(axis=1, dtype=np.float32)[:, -1] for one, other in
                          ((c, y), (s, y), (c, c), (s, s), (c, s)))  # fmt: skip
    s, c = sine_of(np.arctan2(2 * cs, cc - ss) / 2)
    along = (c * xc + s * xs) ** 2 / (c * c * cc + 2 * c * s * cs + s * s * ss)
    across = (c * xs - s * xc) ** 2 / (c * c * ss - 2 * c * s * cs + s * s * cc)
    return torch.from_numpy((along + across) / 2)


def _accurate(phase):
    return np.sin(phase), np.cos(phase)


def _fast(phase):
    """The special function unit: the phase in turns, rounded to float32, and a result with 21 bits."""
    turns = phase * np.float32(1 / (2 * np.pi))
    angle = 2 * np.pi * (turns - np.round(turns)).astype(np.float64)
    return tuple(np.round(f(angle) * 2**21).astype(np.float32) / np.float32(2**21) for f in (np.sin, np.cos))


def _cut_off(phase):
    turn = np.float32(6.2832)
    return _accurate(phase - turn * np.round(phase / turn))


@pytest.mark.parametrize(("sine_of", "allowed"), [(_accurate, True), (_fast, True), (_cut_off, False)])
@pytest.mark.parametrize(("samples", "frequencies"), [(256, 1000), (1024, 4096)])
def test_the_budget_allows_the_fast_sine_and_no_broken_reduction(samples, frequencies, sine_of, allowed):
    """Float32 with accurate or fast sines passes; π with four decimals fails."""
    case, drawn = _drawn(samples, frequencies)
    expected = lombscargle(*(value.double() for value in drawn.values()))
    assert bool(within(_in_float32(drawn, sine_of), expected, case.budget).all()) is allowed


@pytest.mark.timeout(300)
@pytest.mark.parametrize("baseline", _NUMBA, ids=lambda baseline: baseline.id)
def test_a_rung_that_others_are_held_against_would_itself_be_accepted(judge, baseline):
    """Its source alone, submitted like a learner's, is right in both types."""
    name = baseline.function.__name__
    source = textwrap.dedent(inspect.getsource(baseline.function)).replace(name, "ls_numba_cached", 1)
    verdict = judge.grade(re.sub(r": Any|-> None", "", source).replace(") :", "):"), "ls_numba_cached")
    assert verdict.status == "passed", verdict


_KEEP_KERNELS = ("ls_cupy_cached", "ls_numba_cached", "ls_numba_typed", "ls_numba_registers")


def _of_floats(frequencies, floats):
    """The float64 output of a kernel for floats: the bits of one float, repeated, in its first half."""
    _, drawn = _drawn(101, frequencies, "float64")
    got = torch.full((8 * frequencies,), POISON_BYTE, dtype=torch.uint8)
    got[: 4 * frequencies].view(torch.int32).fill_(floats)
    return got.view(torch.float64), lombscargle(drawn["t"], drawn["y"], drawn["freqs"]), drawn


@pytest.mark.parametrize("exercise_id", _KEEP_KERNELS)
@pytest.mark.parametrize("frequencies", [33, 1000, 10_003])
@pytest.mark.parametrize("floats", [0x7FFFFFFF, 0x7FC00000, 0x7F800000, 0x3FC00000, 0])  # a GPU's NaN, a CPU's, ∞, 1.5
def test_half_an_output_is_known_by_what_was_written_and_not_by_its_values(exercise_id, frequencies, floats):
    """Half of a double may be a float NaN, which makes every sum NaN; two NaN floats of a GPU make a NaN double."""
    got, expected, drawn = _of_floats(frequencies, floats)
    assert suspected(got, expected, drawn, EXERCISES[exercise_id].suspects) == HALF.sentence


@pytest.mark.parametrize("exercise_id", _KEEP_KERNELS)
def test_another_half_is_no_kernel_of_floats(exercise_id):
    """A correct half that ends, as with too small a grid; NaN everywhere; nothing at all."""
    got, expected, drawn = _of_floats(1000, 0)
    suspects = EXERCISES[exercise_id].suspects
    right = torch.cat([expected[:500], got[500:]])
    assert suspected(right, expected, drawn, suspects) != HALF.sentence
    assert suspected(expected * float("nan"), expected, drawn, suspects).startswith("Every power is NaN")
    unwritten = got[-1:].repeat(1000)
    assert suspected(unwritten, expected, drawn, suspects) != HALF.sentence


def test_each_rung_of_numba_is_held_against_the_one_below():
    """The gates' baselines, in the order of the climb; a rung that helps must beat the rung below."""
    rungs = ("baseline", "cached", "typed", "fastmath", "registers")
    gates = {rung: EXERCISES[f"ls_numba_{rung}"].gates[0] for rung in rungs}
    assert [gates[rung].baseline for rung in rungs] == ["eager", "baseline", "baseline", "typed", "fastmath"]
    assert [gates[rung].at_least > 1 for rung in rungs] == [True, False, True, True, False]


def test_the_timed_case_stays_as_it_is_on_every_gpu():
    """It does not grow on any machine, and a round has the stated number of launches."""
    exercise = EXERCISES["ls_numba_typed"]
    (case,) = exercise.timed_cases
    machine = SimpleNamespace(copy_gbps=1e9, peak_tflops=1e9, l2_bytes=1 << 26)
    assert ProblemSizes().scale(exercise, case, machine, SimpleNamespace(fits=lambda case, launches=1: True)) == 1
    assert launches_for(SimpleNamespace(capacity=lambda case: 100), machine, exercise, case) == exercise.launches
    assert launches_for(SimpleNamespace(capacity=lambda case: 2), machine, exercise, case) == 2


@pytest.mark.parametrize("begins", [5120, 5400, 7000])
def test_sums_that_go_on_are_known_by_where_they_begin(begins):
    """They begin after the threads of two multiprocessors, at powers too small to count as wrong. Others do not."""
    _, drawn = _drawn(300, 12_000)

    def sums_to(w, *sums):
        return power(w, *(torch.cat([each[:begins], each[begins:] + each[:-begins]]) for each in sums))

    inputs = {name: value.double() for name, value in drawn.items()}
    right = lombscargle(*inputs.values())
    noise = 1 + 1e-3 * torch.randn(12_000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    begin = slice(begins, begins + 3)
    got = lombscargle(*inputs.values(), sums_to=sums_to) * noise
    got[begin] = right[begin] + (got[begin] - right[begin]).clamp(-5e-4 * right.max(), 5e-4 * right.max())
    named = suspected(got, right, inputs, EXERCISES["ls_cupy_launch_bounds"].suspects)
    assert ("do the sums start at 0" in named) == (begins == 5120), named
