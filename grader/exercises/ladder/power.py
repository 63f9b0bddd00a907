"""The power of Lomb and Scargle in torch: the truth, in float64, and the baseline that needs no kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["eager", "lombscargle", "oracle", "power", "terms"]

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
