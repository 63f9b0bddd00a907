"""Ways to find a period without writing a kernel: SciPy, NumPy, torch and CuPy's signal library."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.kernels import load
from benchmarks.rows import Recorder
from benchmarks.timing import host_ms
from grader.exercises import find
from grader.exercises.numba_cupy.ladder_cases import SAMPLES, draw, ladder_case, lombscargle
from grader.judge.checking.buffers import generator

_FREQUENCIES = 1 << 14
_REPEATS = 5
_AGREE = 1e-6  # of the highest peak; all compute in float64

Power = Callable[[], Any]


def periods(recorder: Recorder) -> None:
    """Rows `periods`, one case per way, for 1,024 samples and 16,384 frequencies in float64."""
    drawn = draw(ladder_case(SAMPLES, _FREQUENCIES, "float64"), generator("cuda"), recorder.machine)
    expected = lombscargle(*drawn.values())
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, power in of_this_machine(drawn, Path(folder)).items():
            _must_agree(name, power(), expected)  # and warms up
            times[name] = [host_ms(power) for _ in range(_REPEATS)]
    scipy_ms = median(times["SciPy"])
    for name, taken in times.items():
        recorder.add("periods", name, "median_ms", "ms", median(taken), min(taken), max(taken))
        recorder.add("periods", name, "ratio_vs_scipy", "1", scipy_ms / median(taken))


def of_this_machine(drawn: dict[str, torch.Tensor], folder: Path) -> dict[str, Power]:
    """Return the ways that this machine has; the CPU's have their arrays on the CPU."""
    from scipy.signal import lombscargle as of_scipy

    host = [value.cpu().numpy() for value in drawn.values()]
    numpy = load(find("periodogram_numpy"), folder)
    ways: dict[str, Power] = {
        "SciPy": lambda: of_scipy(*host),
        "NumPy, the reference solution": lambda: numpy(*host),
        "torch": lambda: lombscargle(drawn["t"], drawn["y"], drawn["freqs"]),
    }
    if drawn["t"].is_cuda and find_spec("cupy"):
        try:
            import cupy
            from cupyx.scipy.signal import lombscargle as of_cupyx
        except (ImportError, RuntimeError) as error:  # it loads most CUDA libraries, and one may be missing
            print(f"cupyx.scipy.signal is left out: {error}", flush=True)
            return ways
        arrays = [cupy.asarray(value) for value in drawn.values()]
        ways["cupyx.scipy.signal"] = lambda: of_cupyx(*arrays)
    return ways


def _must_agree(name: str, power: Any, expected: torch.Tensor) -> None:
    """Raise SystemExit if a way gives another result."""
    got = torch.as_tensor(power.get() if hasattr(power, "get") else power)
    error = (got.to(expected) - expected).abs().max() / expected.max()
    if not error < _AGREE:
        raise SystemExit(f"{name} differs by {error:g} of the peak. No figure is written.")
