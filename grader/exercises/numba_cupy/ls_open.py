"""Go past the ladder: Lomb–Scargle power at evenly spaced frequencies, in any language, within an error budget."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

from grader.exercise import Baseline, Budget, Case, Gate, Suspect
from grader.exercises.numba_cupy.ladder_cases import TIMED, draw, ladder_case, lombscargle, power
from grader.exercises.numba_cupy.ladder_rungs import UNWRITTEN, rung

ERROR = 1e-4  # as a share of the peak of a sine of amplitude 1, which is a quarter of the number of samples
_SIXTEENTHS = (10, 14)  # spacing relative to the ladder's: with 15, a high frequency would not be exact
_NEAR = 16  # frequencies at one end of the band: too few steps to lose much accuracy
_FEWEST = 200  # frequencies: with fewer, two bugs may give the same output


def _case(samples: int, frequencies: int) -> Case:
    found = ladder_case(samples, frequencies)
    return replace(found, budget=Budget(ERROR * samples / 4, 0.0))


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    """Inputs as for the rungs, but with a different, random spacing that is exact in float32 as well."""
    import torch

    found = dict(draw(case, source, machine))
    low, high = _SIXTEENTHS
    sixteenths = int(torch.randint(low, high + 1, (1,), generator=source, device=source.device))
    found["freqs"] = (found["freqs"].double() * sixteenths / 16).to(found["freqs"].dtype)
    return found


def _in_any_language(entry: Any, t: Any, y: Any, freqs: Any, out: Any) -> None:
    """The harness: the arrays are of the submission's library."""
    from grader.worker.arrays import call

    call(entry, t, y, freqs, out)


def _last_rung(t: Any, y: Any, freqs: Any, out: Any) -> None:
    from grader.worker.arrays import cupy_arrays
    from grader.worker.harnesses.ladder_kernels import launch

    t, y, freqs, out = cupy_arrays(t, y, freqs, out)
    launch(t, y, freqs, out, fast=True)


def _errors(a: Any) -> Any:
    """The error of each power as a share of the allowed error, or None if that is not meaningful."""
    got = a["got"]
    if a["freqs"].numel() < _FEWEST or not bool(got.isfinite().all()):
        return None
    return (a["got"] - a["expected"]).abs() / (ERROR * a["t"].numel() / 4)


def _jump(errors: Any) -> bool:
    """Whether the powers up to a power of two are right and the next ones suddenly far off."""
    for first in (32, 64, 128, 256, 512, 1024):
        if errors.numel() <= first + 8:
            break
        before, behind = float(errors[:first].max()), float(errors[first : 2 * first].mean())
        if before < 0.5 and behind > max(2.0, 20 * before):
            return True
    return False


def _first_right(a: Any) -> Any:
    """The output, if the first powers are right and the next ones suddenly are not."""
    errors = _errors(a)
    return a["got"] if errors is not None and _jump(errors) else None


def _drifting(a: Any) -> Any:
    """The output, if the error grows from one end of the band to the other, strongly and without a jump."""
    errors = _errors(a)
    if errors is None:
        return None
    both = errors, errors.flip(0)
    return a["got"] if any(map(_grows, both)) and not any(map(_jump, both)) else None


def _grows(errors: Any) -> bool:
    """Whether the first few powers are right and the error is large only far from them.

    Only a few, because errors also grow with the power, and its peak may be near the start of a recurrence.
    """
    near = float(errors[:_NEAR].square().mean().sqrt())
    far = max(float(part.square().mean().sqrt()) for part in errors.chunk(4)[1:])
    return near < 0.25 and far > max(0.5, 30 * near)


def _worse_at_the_ends(a: Any) -> Any:
    """The output, if the middle is right and the error is largest at both ends, as with a coarse grid."""
    errors = _errors(a)
    if errors is None:
        return None
    parts = [float(part.square().mean().sqrt()) for part in errors.chunk(9)]
    ends = min(parts[0], parts[-1])
    return a["got"] if ends > 4 * max(parts[4], 1e-3) and max(parts[0], parts[-1]) > 0.3 else None


def _padded(a: Any) -> Any:
    """The output, if samples at time 0 fill up the last tile: each adds 1 to the cosines' squares."""
    samples, made = a["t"].numel(), []
    for tile in (32, 64, 128, 256, 512, 1024):
        if not (extra := -samples % tile) or a["freqs"].numel() < _FEWEST:
            continue
        for taken in (extra, 0):
            sums_to = functools.partial(_with_more, extra, taken)
            made.append(lombscargle(a["t"], a["y"], a["freqs"], sums_to=sums_to))
    if not made or "got" not in a:
        return made[0] if made else None
    best = min(made, key=lambda one: float((one - a["got"]).norm().nan_to_num(math.inf)))
    changed = float((best - a["expected"]).norm())
    return a["got"] if float((best - a["got"]).norm()) < 0.02 * changed else best


def _with_more(extra: int, taken: int, w: Any, xc: Any, xs: Any, cc: Any, ss: Any, cs: Any) -> Any:
    return power(w, xc, xs, cc + extra, ss - taken, cs)


def _not_a_number(a: Any) -> Any:
    """The output, if most of it is NaN, but not simply unwritten from some point on."""
    unknown = a["got"].isnan()
    known = (~unknown).nonzero()
    ends = bool(len(known)) and int(known[-1]) + 1 == len(known) < len(unknown)
    return a["got"] if 2 * int(unknown.sum()) > len(unknown) >= _FEWEST and not ends else None


_SUSPECTS = (
    Suspect(
        "A power is NaN, from uninitialised memory or from 0 divided by 0. Is memory read past the last sample of a "
        "partial tile, past the end of an array, or before a missing barrier? Does each sum have samples?",
        _not_a_number,
    ),
    Suspect(
        "The padding of the last tile was counted: at time 0 the cosine is 1. End the loop over a tile at the last "
        "sample.",
        _padded,
    ),
    Suspect(
        "The error grows from one end of the band to the other: each step of a rotation loses some accuracy, and a "
        "two-step recurrence loses more. Take fewer steps, then start again with a sine and a cosine.",
        _drifting,
    ),
    Suspect(
        "The first frequencies are right but later ones are wrong: by which angle does a thread rotate to its next "
        "frequency? It must be their distance times t, with the spacing from `freqs`, which is not known in advance. "
        "The rotation needs both the old cosine and the old sine for each new one.",
        _first_right,
    ),
    Suspect(
        "The middle of the band is right, but the error is largest at both ends: the grid is too coarse there. Use "
        "twice as many points as frequencies and a wider kernel, and divide by the kernel's transform.",
        _worse_at_the_ends,
    ),
)

_TIMED = _case(TIMED[0].arrays[0].shape[0], TIMED[0].arrays[-1].shape[0])

_FOUND = rung(
    "ls_open",
    "Go past the ladder",
    "04_go_past_the_ladder",
    "cupy",
    baselines=(Baseline("fast", "the last rung of the ladder", _last_rung),),
    gates=(Gate("fast", 1.5, 6, (_TIMED.name,)),),
    hints=(
        "The sine and cosine of w + d follow from those of w and d: a rotation, four multiplications and two "
        "additions.",
        "The angle between a thread's frequencies is the same for all threads: compute its sine and cosine once per "
        "sample and keep them in shared memory.",
        "cos² + sin² is 1, so one of the two sums of squares is enough.",
        "A thread with 16 frequencies loads each sample once for all of them. Its sums need four registers per "
        "frequency.",
        "The frequencies are multiples of their spacing and exact in float32, so freqs[1] - freqs[0] is exact as well.",
    ),
    correctness_points=4,
    float64=False,
    harness=_in_any_language,
    cases=(_case(256, 1000), _case(37, 1), _case(101, 33), _case(1000, 100_003), _TIMED),
    simulator_cases=(_case(300, 259), _case(37, 1), _case(33, 33), _case(24, 2_571)),
    operations=lambda case: 100 * case.arrays[-1].shape[0],  # the least that a fast transform needs
    time_limit_s=180.0,  # torch's default headers take 20 s on a fast machine, 120 s on a busy slow one
)
LS_OPEN = replace(
    _FOUND,
    case_limit_s=60.0,  # without a GPU, a block per frequency takes 13 s on a fast machine
    launches=8,  # the fastest solutions take a tenth of a rung's time; with more, the oracle would dominate
    # The common suspects come first, except for NaN, which has different causes here.
    suspects=(*(each for each in _FOUND.suspects if each is not UNWRITTEN), *_SUSPECTS),
    draw=_draw,
    timed_cases=(_TIMED,),
    plot_cases=tuple(_case(TIMED[0].arrays[0].shape[0], 1 << power) for power in range(14, 21)),
)
