"""The Lomb–Scargle ladder: its cases, inputs and error budgets, the oracle in float64, and the baseline in torch.

`out` is the unnormalised power of `scipy.signal.lombscargle(t, y, freqs)`: half the sum of the squared projections on
a cosine and a sine that a shift in time, tau, makes orthogonal. A sine of amplitude A with N samples peaks near
N A² / 4. Frequencies are angular. Method: Lomb, Astrophys. Space Sci. 39, 447 (1976); Scargle, Astrophys. J. 263, 835
(1982); with the sums in one pass: Townsend, Astrophys. J. Suppl. 191, 247 (2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from grader.exercise import Array, Budget, Case

PARAMETERS = ("t", "y", "freqs", "out")
SAMPLES, FREQUENCIES = 1 << 10, 1 << 20  # of the timed case, as in the authors' published figures
_SPAN = 10 * math.pi  # the samples are in 0 … 10 π
_BAND = 8.0  # width of the frequency band, if there are many frequencies
_LOWEST = 0.25  # a slower signal has less than two turns in the span: its sums are ill-conditioned
_NOISE = 0.5
# As shares of N, the number of samples; a peak is near N / 4. A float32 phase, up to 270, has an error of 1.5e-5. The
# fast sine adds as much: together about 2e-6 of N. A range reduction by 2 * 3.1416 has an error of 3e-5 of N.
ABSOLUTE = {"float32": 5e-6, "float64": 1e-12}
RELATIVE = {"float32": 2e-5, "float64": 1e-10}


def ladder_case(samples: int, frequencies: int, dtype: Literal["float32", "float64"] = "float32") -> Case:
    """A case of this size. It does not grow with the GPU: one launch is long enough."""
    names = "sample" + "s" * (samples > 1), "frequencies" if frequencies > 1 else "frequency"
    name = f"{samples:,} {names[0]} × {frequencies:,} {names[1]}"
    shapes = {"t": samples, "y": samples, "freqs": frequencies, "out": frequencies}
    arrays = tuple(
        Array(parameter, (shapes[parameter],), dtype, role="out" if parameter == "out" else "in", grows=None)
        for parameter in PARAMETERS
    )
    budget = Budget(ABSOLUTE[dtype] * samples, RELATIVE[dtype])
    return Case(name + (", float64" if dtype == "float64" else ""), arrays, budget=budget)


def draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    """Samples at random, sorted times: a sine of amplitude 1 and random frequency, in noise, with mean 0.

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
    hidden = freqs[0] + (0.5 + 0.5 * chance[0]) * count * spacing  # not low, where a wrong phase hardly shows
    y = torch.sin(hidden * t.double() + 2 * math.pi * chance[1]) + _NOISE * torch.randn(samples, **where)
    return {"t": t, "y": (y - y.mean()).to(dtype), "freqs": freqs.to(dtype)}


CASES = (
    ladder_case(256, 1000),  # first, because the report can name a bug only if many frequencies are wrong
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


_CHUNK = 1 << 23  # elements of a float64 intermediate: 64 MiB


def lombscargle(t: Any, y: Any, freqs: Any, turn: Callable[[Any], Any] = lambda phase: phase,
                sums_to: Callable[..., Any] | None = None) -> Any:  # fmt: skip
    """The power at each frequency, in the type of the arguments: float64 for the oracle.

    It is independent of SciPy's versions. Bugs use `turn`, applied to a phase before its sine, and `sums_to`, which
    computes a power from the five sums.
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
    """Lomb's power from the five sums: cosines and sines with y, their squares, and their products."""
    import torch

    wtau = 0.5 * torch.atan2(2 * cs, cc - ss) if tau is None else w * tau
    c, s = wtau.cos(), wtau.sin()
    return terms(c * xc + s * xs, c * xs - s * xc, c, s, cc, ss, 2 * c * s * cs)


def terms(along: Any, across: Any, c: Any, s: Any, cc: Any, ss: Any, mixed: Any) -> Any:
    """The power from the projections on the shifted cosine and sine. A bug may have these or `mixed` wrong."""
    return 0.5 * (along**2 / (c * c * cc + mixed + s * s * ss) + across**2 / (c * c * ss - mixed + s * s * cc))


def oracle(inputs: Any) -> Any:
    return lombscargle(inputs["t"], inputs["y"], inputs["freqs"])


def eager(t: Any, y: Any, freqs: Any, out: Any) -> None:
    """The power in torch, 2¹⁴ frequencies at a time: the baseline without a custom kernel."""
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
