"""Find a period with NumPy: the Lomb–Scargle power at all frequencies at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.exercises.numba_cupy.ladder_cases import ladder_case
from grader.exercises.numba_cupy.ladder_rungs import rung


def _on_host(entry: Any, t: Any, y: Any, freqs: Any, out: Any) -> None:
    import numpy as np
    import torch

    power = entry(*(tensor.cpu().numpy().copy() for tensor in (t, y, freqs)))
    if power is None:
        raise TypeError("it returned None: return the power, one value per frequency")
    if np.shape(power) != tuple(out.shape):
        raise ValueError(f"it returned the shape {np.shape(power)}, but freqs has the shape {tuple(out.shape)}")
    out.copy_(torch.from_numpy(np.array(power, dtype=np.float64)))


_CASES = tuple(
    ladder_case(samples, frequencies, "float64")
    for samples, frequencies in ((256, 1000), (37, 1), (101, 33), (1000, 3000))
)

PERIODOGRAM_NUMPY = replace(
    rung(
        "periodogram_numpy",
        "Find a period with NumPy",
        "01_find_a_period",
        "torch",
        baselines=(),
        gates=(),
        correctness_points=4,
        float64=False,
        harness=_on_host,
        cases=_CASES,
        simulator_cases=_CASES,
        hints=(
            "`freqs[:, None] * t` has one row per frequency and one column per sample.",
            "`cosine @ y` sums over the samples and gives Xc; `(cosine * sine).sum(axis=1)` gives D.",
            "`np.arctan2(2 * D, C - S) / 2` is w tau, for all frequencies at once.",
        ),
    ),
    parameters=("t", "y", "freqs"),
    plot_cases=(),
    launches=None,
)
