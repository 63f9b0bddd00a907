"""The power of Lomb and Scargle in torch: the truth, in float64, and the baseline that needs no kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from grader.exercise import Array, Budget, Case

# Cases of the ladder, what is drawn for them, and the errors that are allowed.

PARAMETERS = ("t", "y", "freqs", "out")
SAMPLES, FREQUENCIES = 1 << 10, 1 << 20  # of the timed case, as in the figures that the authors published
_SPAN = 10 * math.pi  # the samples lie in 0 … 10 π
_BAND = 8.0  # the width of the band of frequencies, where there are many
_LOWEST = 0.25  # a slower signal has less than a turn or two in the span: sums of it are badly conditioned
_NOISE = 0.5
# Of N, the number of samples; a peak is near N / 4. In float32 a phase, up to 270, is off by 1.5e-5 before its sine is
# taken, and the fast sine adds as much: together some 2e-6 of N. A range reduction by 2 * 3.1416 is off by 3e-5 of it.
ABSOLUTE = {"float32": 5e-6, "float64": 1e-12}
RELATIVE = {"float32": 2e-5, "float64": 1e-10}


def ladder_case(
    samples: int, frequencies: int, dtype: Literal["float32", "float64"] = "float32", absolute: float | None = None
) -> Case:
    """So many samples and frequencies. The case does not grow with the GPU: its time is far above any launch's.

    `absolute` is the error that is allowed, as a share of the number of samples.
    """
    name = f"{samples:,} samples × {frequencies:,} {'frequencies' if frequencies > 1 else 'frequency'}"
    shapes = {"t": samples, "y": samples, "freqs": frequencies, "out": frequencies}
    arrays = tuple(
        Array(parameter, (shapes[parameter],), dtype, role="out" if parameter == "out" else "in", grows=None)
        for parameter in PARAMETERS
    )
    budget = Budget((absolute or ABSOLUTE[dtype]) * samples, RELATIVE[dtype])
    return Case(name + (", float64" if dtype == "float64" else ""), arrays, budget=budget)


def draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    """Samples at random times, in order; a sine of amplitude 1 at a frequency that nobody knows, in noise, mean 0.

    The frequencies are multiples of their spacing, a power of two, so that each is exact in float32 as well.
    """
    import torch

    arrays = {array.name: array for array in case.arrays}
    (samples,), (count,) = arrays["t"].shape, arrays["freqs"].shape
    dtype = getattr(torch, arrays["t"].dtype)
    where = {"generator": source, "device": source.device, "dtype": torch.float64}
    spacing = 2.0 ** -max(3, math.ceil(math.log2(count / _BAND)))
    first = int(torch.randint(round(_LOWEST / spacing), round(3 * _LOWEST / spacing) + 1, (1,), generator=source,
                              device=source.device))  # fmt: skip
    freqs = spacing * (first + torch.arange(count, dtype=torch.float64, device=source.device))
    t = (_SPAN * torch.rand(samples, **where)).sort().values.to(dtype)
    chance = torch.rand(2, **where)
    hidden = freqs[0] + (0.5 + 0.5 * chance[0]) * count * spacing  # not low: there a broken phase hardly shows
    y = torch.sin(hidden * t.double() + 2 * math.pi * chance[1]) + _NOISE * torch.randn(samples, **where)
    return {"t": t, "y": (y - y.mean()).to(dtype), "freqs": freqs.to(dtype)}


CASES = (
    ladder_case(256, 1000),  # the first: where many frequencies are wrong, the report can name the bug
    ladder_case(37, 1),
    ladder_case(101, 33),
    ladder_case(1000, 100_003),
    ladder_case(SAMPLES, FREQUENCIES),
)
FLOAT64_CASES = (ladder_case(101, 33, "float64"), ladder_case(1000, 100_003, "float64"))
SIMULATOR_CASES = (ladder_case(70, 259), ladder_case(37, 1), ladder_case(33, 33), ladder_case(24, 2_571))
SIMULATOR_FLOAT64_CASES = (ladder_case(33, 33, "float64"), ladder_case(40, 211, "float64"))
TIMED = (ladder_case(SAMPLES, FREQUENCIES),)
PLOT = tuple(ladder_case(SAMPLES, 1 << power) for power in range(14, 21))


# The power of Lomb and Scargle in torch: the truth, in float64, and the baseline that needs no kernel.

_CHUNK = 1 << 23  # elements of a float64 intermediate: 64 MiB


def lombscargle(t: Any, y: Any, freqs: Any, turn: Callable[[Any], Any] = lambda phase: phase,
                sums_to: Callable[..., Any] | None = None) -> Any:  # fmt: skip
    """The power at each of the frequencies, in the type of the arguments: float64 where the truth is asked for.

    It stands as it is written here, whatever becomes of SciPy's. `turn` and `sums_to` are for bugs: what is done to a
    phase before its sine is taken, and what is made of the five sums.
    """
    import torch

    found = []
    for some in freqs.split(max(1, _CHUNK // t.numel())):
        phase = turn(some[:, None] * t)
        c, s = phase.cos(), phase.sin()
        sums = c @ y, s @ y, (c * c).sum(1), (s * s).sum(1), (c * s).sum(1)
        found.append((sums_to or power)(some, *sums))
    return torch.cat(found)


def power(w: Any, xc: Any, xs: Any, cc: Any, ss: Any, cs: Any, tau: Any = None) -> Any:
    """Lomb's power from the five sums: cosines and sines with y, squared, and with each other."""
    import torch

    wtau = 0.5 * torch.atan2(2 * cs, cc - ss) if tau is None else w * tau
    c, s = wtau.cos(), wtau.sin()
    return terms(c * xc + s * xs, c * xs - s * xc, c, s, cc, ss, 2 * c * s * cs)


def terms(along: Any, across: Any, c: Any, s: Any, cc: Any, ss: Any, mixed: Any) -> Any:
    """The power from the projections on the shifted cosine and sine, which a bug may have wrong, or `mixed`."""
    return 0.5 * (along**2 / (c * c * cc + mixed + s * s * ss) + across**2 / (c * c * ss - mixed + s * s * cc))


def oracle(inputs: Any) -> Any:
    return lombscargle(inputs["t"], inputs["y"], inputs["freqs"])


def eager(t: Any, y: Any, freqs: Any, out: Any) -> None:
    """The power in torch, a sixteenth of a gigabyte of phases at a time: the baseline that needs no kernel."""
    import torch

    for some, where in zip(freqs.split(1 << 14), out.split(1 << 14), strict=True):
        phase = some[:, None] * t
        c, s = phase.cos(), phase.sin()
        xc, xs, cc, ss, cs = c @ y, s @ y, (c * c).sum(1), (s * s).sum(1), (c * s).sum(1)
        wtau = 0.5 * torch.atan2(2 * cs, cc - ss)
        c, s = wtau.cos(), wtau.sin()
        along = (c * xc + s * xs) ** 2 / (c * c * cc + 2 * c * s * cs + s * s * ss)
        across = (c * xs - s * xc) ** 2 / (c * c * ss - 2 * c * s * cs + s * s * cc)
        where.copy_(0.5 * (along + across))
