"""Beyond the ladder: other algorithms and libraries against the last rung in one run, with their errors."""

from __future__ import annotations

import re
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernels import load
from benchmarks.ladder import correct_digits, scipy_time_ms
from benchmarks.limits import Fault
from benchmarks.pairs import imported
from benchmarks.peers import LIBRARIES, is_there
from benchmarks.rows import Recorder
from benchmarks.timing import host_ms, in_turn
from grader.authoring.stubs import solution
from grader.exercises import find
from grader.exercises.numba_cupy.ladder_cases import lombscargle
from grader.judge.checking.buffers import generator
from grader.judge.score import interval
from grader.worker.arrays import call

LAST, FFT64 = "last rung", "FFT, float64"
STEPS, THREADS = (8, 16, 32), (64, 128)
_CORPUS = Path(__file__).parents[1] / "tests" / "mistakes" / "ls_open"
_FFT, _INTERPOLATED = _CORPUS / "right_fft.py", _CORPUS / "right_interpolated.py"
_LIBRARY_REPEATS, _LEAST_DIGITS = 9, 3.0
_FLOAT64 = {  # and a wider kernel on a finer grid, for an error of 1e-9, which nifty-ls asks for
    r"\bfloat(2?)\b": r"double\1", r"(\d\.\d+)f\b": r"\1", r"\b(sqrt|exp)f\(": r"\1(",
    r"\bfloat32\b": "float64", r"\bcomplex64\b": "complex128", r"^WIDTH = \d+": "WIDTH = 12",
    r"^FINER = [\d.]+": "FINER = 2",
}  # fmt: skip
# How many times as fast as the last rung a way must be, and its largest error as a share of the peak.
_NEEDED = {"rotation": (1.5, 2e-5), "FFT": (5.0, 1e-4), "interpolation": (10.0, 1e-4)}


def with_knobs(source: str, **knobs: int) -> str:
    """Return the reference solution with other values of its constants `STEPS` and `THREADS`.

    Raises:
        ValueError: the solution does not define a constant exactly once.
    """
    for name, value in knobs.items():
        source, count = re.subn(rf"^{name} = \d+\b", f"{name} = {value}", source, flags=re.MULTILINE)
        if count != 1:
            raise ValueError(f"The reference solution of ls_open must define {name} exactly once.")
    return source


def in_float64(source: str) -> str:
    """Return the FFT with all arrays and numbers in float64, and with a kernel wide enough for that."""
    for written, instead in _FLOAT64.items():
        source = re.sub(written, instead, source, flags=re.MULTILINE)
    return source


def past(recorder: Recorder) -> None:
    """Rows `ladder/past`, the ways beyond the last rung, and `ladder/steps`, the rotation with other constants.

    Raises:
        Fault: a way is too slow or too inaccurate. Its rows are written nevertheless.
    """
    exercise, reference = find("ls_open"), solution("ls_open")
    assert exercise.draw is not None
    case = exercise.timed_cases[0]
    drawn = exercise.draw(case, generator("cuda"), recorder.machine)
    expected = lombscargle(*(value.double() for value in drawn.values()))
    out = torch.empty_like(drawn["freqs"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        last = load(find("ls_cupy_launch_bounds"), folder)
        accurate = reference.replace("__sincosf(", "sincosf(")
        texts = {"rotation": reference, "rotation, accurate sine": accurate}
        texts |= {"FFT": _FFT.read_text("utf-8"), "interpolation": _INTERPOLATED.read_text("utf-8")}
        texts[FFT64] = in_float64(texts["FFT"])
        knobs = {
            f"{s} frequencies, {n} threads": with_knobs(reference, STEPS=s, THREADS=n) for s in STEPS for n in THREADS
        }
        functions, calls, digits, faults = {LAST: last}, {}, {}, []
        for way, text in ({LAST: ""} | texts | knobs).items():
            try:
                if way != LAST:
                    functions[way] = imported(text, "ls_open", folder)
                arrays = [value.double() if way == FFT64 else value for value in (*drawn.values(), out)]
                one = partial(call, functions[way], *arrays)
                digits[way] = _digits(one, arrays[-1], expected)
            except Exception as error:
                if way == LAST:
                    raise
                traceback.print_exc()  # the other ways are still measured
                faults.append(f"ladder/past: {way}: {type(error).__name__}: {error}")
            else:
                calls[way] = one
    times = {way: [us / 1e3 for us in some] for way, some in in_turn(calls).items()}
    for way in calls:
        bench = "ladder/steps" if way in knobs else "ladder/past"
        add = partial(recorder.add, bench, way if way in knobs or way == FFT64 else f"{way}, float32")
        add("median_ms", "ms", *astuple(interval(times[way])))
        ratios = [theirs / ours for theirs, ours in zip(times[LAST], times[way], strict=True)]
        add("ratio_vs_last_rung", "1", *astuple(interval(ratios)))
        add("correct_digits", "1", digits[way])
        if (registers := _registers(functions[way])) is not None:
            add("registers", "1", registers)
    faults += _libraries(recorder, drawn, expected, interval(times[LAST]).middle)
    if faults := [*faults, *_faults(times, digits)]:
        raise Fault(" ".join(faults))


def _libraries(recorder: Recorder, drawn: Mapping[str, Any], expected: torch.Tensor, last_ms: float) -> list[str]:
    """Add the rows of SciPy and of the libraries that are there, by the host's clock. Return what failed."""
    ms = scipy_time_ms(drawn)
    recorder.add("ladder/past", "SciPy on the CPU, float64", "median_ms", "ms", ms)
    recorder.add("ladder/past", "SciPy on the CPU, float64", "ratio_vs_last_rung", "1", last_ms / ms)
    faults = []
    for library in LIBRARIES:
        if not all(is_there(needs, library.label, "ls_open") for needs in library.needs):
            continue
        add = partial(recorder.add, "ladder/past", f"{library.label}, float64")  # float32 frequencies are not exact
        try:
            one = library.make(drawn)
            power = torch.as_tensor(one(), device=expected.device)
            digits = correct_digits(power, expected)
            if not digits >= _LEAST_DIGITS:  # also NaN
                raise ValueError(f"only {digits:.1f} digits are correct")
            taken = [host_ms(one) for _ in range(_LIBRARY_REPEATS)]
        except Exception as error:
            traceback.print_exc()
            faults.append(f"ladder/past: {library.label}: {type(error).__name__}: {error}")
            continue
        add("median_ms", "ms", *astuple(interval(taken)))
        add("ratio_vs_last_rung", "1", *astuple(interval([last_ms / ms for ms in taken])))
        add("correct_digits", "1", digits)
    return faults


def _digits(one: Callable[[], Any], out: torch.Tensor, expected: torch.Tensor) -> float:
    out.fill_(float("nan"))
    one()
    return correct_digits(out, expected)


def _registers(function: Any) -> int | None:
    """Return the registers of `kernel` in the function's cell, or None if there is no such name."""
    kernel = function.__globals__.get("kernel")
    return None if kernel is None else int(kernel.num_regs)


def _faults(times: dict[str, list[float]], digits: dict[str, float]) -> list[str]:
    found = []
    for way, (least, error) in _NEEDED.items():
        if way not in times:
            continue
        ratio = interval([theirs / ours for theirs, ours in zip(times[LAST], times[way], strict=True)]).middle
        off = 10 ** -digits[way]
        if not (ratio >= least and off <= error):
            is_ = f"{way} is {ratio:.2f} times as fast as the last rung, with an error of {off:.0e}"
            found.append(f"ladder/past: {is_}; {least:g} and {error:.0e} are required.")
    return found
