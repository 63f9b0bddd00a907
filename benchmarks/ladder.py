"""Every rung of the Lomb–Scargle ladder in one run: first call, kernel, registers, ratio to SciPy, error; both types.

The rungs are the reference solutions of the exercises `ls_<library>_<rung>`, for each installed library. The published
ladder's last rung in CuPy computes sine and cosine in one call. It has no exercise: the last reference is changed.
"""

from __future__ import annotations

import contextlib
import math
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any
from uuid import uuid4

import torch

from benchmarks.kernels import load
from benchmarks.limits import Fault
from benchmarks.rows import Recorder
from benchmarks.timing import host_ms, in_turn
from grader.exercise import Exercise
from grader.exercises import EXERCISES
from grader.exercises.numba_cupy.ladder_cases import FREQUENCIES, SAMPLES, draw, ladder_case, lombscargle
from grader.judge.checking.buffers import generator
from grader.judge.score import interval
from grader.worker.call_profile import ran
from grader.worker.gpu_start import give_numba_its_names
from grader.worker.toolchain import nvcc

LIBRARIES = {"numba": "numba_cuda", "cupy": "cupy"}  # and the module that each needs to be installed
_TYPES = ("float32", "float64")
_SCIPY_FREQUENCIES = 1 << 12  # of a million: all of them would take SciPy most of a minute
_SCIPY_REPEATS = 3
_KERNEL_RUNS = 20
_APART = "const T c = cos(w * t[j]), s = sin(w * t[j]);"  # in the reference of the last rung


@dataclass(frozen=True)
class Rung:
    """One rung: its name without the library, the exercise whose reference it is, and a change to that text."""

    library: str
    name: str
    exercise: Exercise
    change: Callable[[str], str] = str


def rungs(library: str) -> list[Rung]:
    """Return the rungs of a library, in the order of the ladder."""
    beginning = f"ls_{library}_"
    found = (exercise for exercise in EXERCISES.values() if exercise.id.startswith(beginning))
    climbed = [Rung(library, exercise.id.removeprefix(beginning), exercise) for exercise in found]
    return [*climbed, Rung(library, "sincos", climbed[-1].exercise, both_at_once)] if library == "cupy" else climbed


def correct_digits(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Return how many decimal digits of the highest peak are right everywhere: 6 is an error of a millionth of it."""
    error = ((got.double() - expected).abs().max() / expected.abs().max()).item()
    return -math.log10(max(error, 1e-17))


def ladder(recorder: Recorder) -> None:
    """Rows `ladder/<library>`, one case per rung and type.

    Raises:
        Fault: some rungs are wrong or do not run. They get no figures; the others are measured.
    """
    source, faults = generator("cuda"), []
    give_numba_its_names()
    for dtype in _TYPES:
        case = replace(ladder_case(SAMPLES, FREQUENCIES, dtype), name=dtype)  # type: ignore[arg-type]
        drawn = draw(case, source, recorder.machine)
        expected = lombscargle(*(value.double() for value in drawn.values()))
        scipy_ms = scipy_time_ms(drawn)
        out = torch.empty_like(expected, dtype=getattr(torch, dtype))
        peers: dict[tuple[str, str], Callable[[], Any]] = {}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # a rung writes a file
            for rung, call, module in _loaded(Path(folder), (*drawn.values(), out)):
                try:
                    first_ms, digits = _first_call(call, out, expected, rung)
                except (Exception, SystemExit) as error:
                    traceback.print_exc()
                    faults.append(f"ladder: {rung.exercise.id}, {dtype}: {type(error).__name__}: {error}")
                    continue
                peers[rung.library, rung.name] = call
                add = partial(recorder.add, f"ladder/{rung.library}", f"{rung.name}, {dtype}")
                add("first_call_ms", "ms", first_ms)
                add("correct_digits", "1", digits)
                if (registers := _registers(rung, module, dtype)) is not None:
                    add("registers", "1", registers)
                if kernel_ms := _kernel_ms(call):
                    add("kernel_ms", "ms", kernel_ms)
            for (library, name), times in _times(peers).items():
                add = partial(recorder.add, f"ladder/{library}", f"{name}, {dtype}")
                middle, low, high = (value / 1e3 for value in astuple(interval(times)))
                add("median_ms", "ms", middle, low, high)
                add("ratio_vs_scipy", "1", scipy_ms / middle, scipy_ms / high, scipy_ms / low)
        for library in {library for library, _ in peers}:
            recorder.add(f"ladder/{library}", f"SciPy on the CPU, {dtype}", "median_ms", "ms", scipy_ms)
    if faults:
        raise Fault("\n".join(faults))


def _times(peers: dict[tuple[str, str], Callable[[], Any]]) -> dict[tuple[str, str], list[float]]:
    """Return the microseconds of each call of each rung, timed in turn."""
    found = in_turn({"/".join(key): call for key, call in peers.items()}) if peers else {}
    return {key: found["/".join(key)] for key in peers}


def _loaded(folder: Path, arrays: tuple[Any, ...]) -> Iterator[tuple[Rung, Callable[[], Any], ModuleType]]:
    """Import the reference solutions again, so that the first call compiles."""
    nvcc.offer(simulated=False)  # for the rung that is built beforehand
    for library, needed in LIBRARIES.items():
        if find_spec(needed) is None:
            print(f"{needed} is not installed here: no rung of {library} is measured.", flush=True)
            continue
        for rung in rungs(library):
            function = load(rung.exercise, folder, lambda text, rung=rung: never_compiled(rung.change(text)))
            assert rung.exercise.harness is not None
            yield rung, partial(rung.exercise.harness, function, *arrays), sys.modules[function.__module__]


def both_at_once(text: str) -> str:
    """Return the text with one call for the sine and the cosine of a sample instead of two."""
    return text.replace(_APART, "T c, s;\n            sincos(w * t[j], &s, &c);")


def never_compiled(text: str) -> str:
    """Return the text with a unique comment in its CUDA C++, because CuPy caches compiled kernels, also on disk."""
    return text.replace('r"""', f'r"""// {uuid4()}', 1)


def _first_call(call: Callable[[], Any], out: torch.Tensor, expected: torch.Tensor, rung: Rung) -> tuple[float, float]:
    """Return the first call's milliseconds, and the number of correct digits.

    Raises:
        SystemExit: the rung is wrong.
    """
    out.fill_(float("nan"))
    first_ms = host_ms(call)
    digits = correct_digits(out, expected)
    if not digits > 4:  # also NaN
        raise SystemExit(f"{rung.exercise.id} is wrong: {digits:.1f} digits agree. Its figures are not written.")
    return first_ms, digits


def _kernel_ms(call: Callable[[], Any]) -> float | None:
    """Return the longest kernel's time by the profiler, or None if the profiler does not work."""

    def many() -> None:
        for _ in range(_KERNEL_RUNS):
            call()

    rows = ran(many)
    return rows[0]["microseconds"] / rows[0]["count"] / 1e3 if rows else None


def _registers(rung: Rung, module: ModuleType, dtype: str) -> int | None:
    """Return the registers per thread as the driver reports them, or None if the library does not say."""
    return numba_registers(module, dtype) if rung.library == "numba" else _cupy_registers(module, dtype)


def _cupy_registers(module: ModuleType, dtype: str) -> int | None:
    """Return those of the kernel for this type in the module's `kernels`, or None if there is none."""
    kept = getattr(module, "kernels", {}).get(torch.empty(0, dtype=getattr(torch, dtype)).numpy().dtype)
    return None if kept is None else int(kept[0].num_regs)


def numba_registers(module: ModuleType, dtype: str) -> int | None:
    """Return those of the kernel for this type among a module's names, or in a dictionary among them."""
    values = [*vars(module).values(), *(one for each in vars(module).values() if isinstance(each, dict)
                                        for one in each.values())]  # fmt: skip
    for kernel in values:
        for signature, compiled in dict(getattr(kernel, "overloads", None) or {}).items():
            if dtype in str(signature):
                return int(compiled.regs_per_thread)
    return None


def scipy_time_ms(drawn: Mapping[str, torch.Tensor]) -> float:
    """Return SciPy's time for all frequencies, extrapolated from some: it is proportional to their number."""
    from scipy.signal import lombscargle as of_scipy

    t, y, freqs = (value.cpu().double().numpy() for value in drawn.values())
    seconds = []
    for _ in range(_SCIPY_REPEATS):
        start = time.perf_counter()
        of_scipy(t, y, freqs[:_SCIPY_FREQUENCIES])
        seconds.append(time.perf_counter() - start)
    return 1e3 * median(seconds) * freqs.size / _SCIPY_FREQUENCIES
