"""Find a period with NumPy: the power of Lomb and Scargle, for all frequencies at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.exercises.numba_cupy.ladder_rungs import ladder_case, rung


def _on_host(entry: Any, t: Any, y: Any, freqs: Any, out: Any) -> None:
    import numpy as np
    import torch

    power = entry(*(tensor.cpu().numpy().copy() for tensor in (t, y, freqs)))
    if power is None:
        raise TypeError("it returned None: return the power, one value a frequency")
    if np.shape(power) != tuple(out.shape):
        raise ValueError(f"it returned the shape {np.shape(power)}; {tuple(out.shape)} is the shape of freqs")
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
            "`freqs[:, None] * t` has a row for each frequency and a column for each sample.",
            "`cosine @ y` sums over the samples and is Xc; `(cosine * sine).sum(axis=1)` sums as well and is D.",
            "`np.arctan2(2 * D, C - S) / 2` is w tau, for all frequencies at once.",
        ),
    ),
    parameters=("t", "y", "freqs"),
    plot_cases=(),
    launches=None,
)
