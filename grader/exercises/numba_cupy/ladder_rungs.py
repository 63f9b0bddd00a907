"""The rungs of the Lomb–Scargle ladder: known bugs, and one rung as an exercise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from grader.exercise import Baseline, Budget, Case, Exercise, Gate, Rules, Suspect
from grader.exercises.numba_cupy.ladder_cases import (
    ABSOLUTE,
    CASES,
    FLOAT64_CASES,
    PARAMETERS,
    PLOT,
    RELATIVE,
    SAMPLES,
    SIMULATOR_CASES,
    SIMULATOR_FLOAT64_CASES,
    TIMED,
    draw,
    lombscargle,
    oracle,
    power,
    terms,
)
from grader.exercises.numba_cupy.ladder_compiled import OF_COMPILED
from grader.protocol.arena import POISON_BYTE

_FEWEST = 200  # frequencies: with fewer, two bugs may give the same output
_GRID = 20 * 128  # threads of the ladder's grid per multiprocessor
_MORE = 10  # times the deviation of right powers, in the median
_NEAR = 0.02  # the largest deviation from a bug's output, as a share of the bug's effect


def _from(change: Callable[[Any], Any], near: float = _NEAR) -> Callable[[Any], Any]:
    """A bug's output; the submission's own if it is equal within float32, because powers can be tiny."""

    def output(a: Any) -> Any:
        if a["freqs"].numel() < _FEWEST:
            return None
        bug, got = change(a), a.get("got")
        effect = min((bug - a["expected"]).norm(), bug.norm())  # zeros are near a bug that makes all powers tiny
        this = got is not None and bool((got - bug).norm() <= near * effect)
        return got if this else bug

    return output


def _other_power(sums_to: Callable[..., Any]) -> Callable[[Any], Any]:
    return _from(lambda a: lombscargle(a["t"], a["y"], a["freqs"], sums_to=sums_to))


def _atan2(cs: Any, difference: Any) -> Any:
    import torch

    return torch.atan2(cs, difference)


def _shift(cc: Any, ss: Any, cs: Any) -> tuple[Any, Any]:
    wtau = _atan2(2 * cs, cc - ss) / 2
    return wtau.cos(), wtau.sin()


def _other_factors(along: float = 1, across: float = -1, mixed: float = 2) -> Callable[[Any], Any]:
    """The power (c Xc + s Xs)² / … + (c Xs - s Xc)² / …, with other factors of s Xs, of s Xc and of c s D."""

    def power(w: Any, xc: Any, xs: Any, cc: Any, ss: Any, cs: Any) -> Any:
        c, s = _shift(cc, ss, cs)
        return terms(c * xc + along * s * xs, c * xs + across * s * xc, c, s, cc, ss, mixed * c * s * cs)

    return _other_power(power)


def _one_term(along: float, across: float) -> Callable[[Any], Any]:
    """The two terms of the power with these factors."""

    def power(w: Any, xc: Any, xs: Any, cc: Any, ss: Any, cs: Any) -> Any:
        c, s = _shift(cc, ss, cs)
        mixed = 2 * c * s * cs
        first = terms(c * xc + s * xs, 0, c, s, cc, ss, mixed)
        return along * first + across * terms(0, c * xs - s * xc, c, s, cc, ss, mixed)

    return _other_power(power)


def _of_the_last_sample(a: Any) -> Any:
    """The cosine and the sine of the last sample's phase are used as those of w tau."""
    last = a["t"][-1]

    def sums_to(w: Any, xc: Any, xs: Any, cc: Any, ss: Any, cs: Any) -> Any:
        return power(w, xc, xs, cc, ss, cs, last)

    return lombscargle(a["t"], a["y"], a["freqs"], sums_to=sums_to)


def _mixed_added_twice(w: Any, xc: Any, xs: Any, cc: Any, ss: Any, cs: Any) -> Any:
    c, s = _shift(cc, ss, cs)
    first = terms(c * xc + s * xs, 0, c, s, cc, ss, 2 * c * s * cs)
    return first + terms(0, c * xs - s * xc, c, s, cc, ss, -2 * c * s * cs)


def _samples(which: slice) -> Callable[[Any], Any]:
    return _from(lambda a: lombscargle(a["t"][which], a["y"][which], a["freqs"]))


def _short_pi(phase: Any) -> Any:
    """A phase reduced with a π of four decimals, otherwise exact."""
    return phase - 2 * 3.1416 * (phase / (2 * 3.1416)).round()


def _not_a_number(a: Any) -> Any:
    return a["expected"] * float("nan") if a["freqs"].numel() >= _FEWEST else None


def _double(a: Any) -> bool:
    """Whether the arrays are float64: few of their values are float32 values."""
    return bool((a["t"].float().double() != a["t"]).any()) and a["freqs"].numel() > 1


def _halved(a: Any) -> Any:
    """The output, if only the first half of its bytes was written, and wrongly.

    The values may be anything: half of a double is a random float, and two NaN floats make a NaN double. So the bits
    tell what was written. If the count is odd, the middle double is half written.
    """
    if not _double(a):
        return None
    got = a.get("got", _unwritten_from(a["expected"] / 3, a["expected"].numel() // 2))
    count, written = got.numel(), ~_poison(got)
    halved = bool(written[: count // 2].all()) and not bool(written[-(-count // 2) :].any())
    right = (got - a["expected"]).abs() <= 1e-3 * a["expected"].abs()
    return got if halved and 4 * int(right.sum()) < count else None


def _poison(got: Any) -> Any:
    """Whether each value was never written, as a float64 or as a float32 that was converted."""
    import torch

    poison = torch.full((8,), POISON_BYTE, dtype=torch.uint8, device=got.device)
    single = poison[:4].view(torch.float32).double()
    return torch.isin(got.view(torch.int64), torch.cat([poison.view(torch.int64), single.view(torch.int64)]))


def _unwritten_from(values: Any, first: int) -> Any:
    import torch

    changed = values.clone()
    changed.view(torch.uint8)[changed.element_size() * first :] = POISON_BYTE
    return changed


def _from_there(values: Any, first: int, factor: float) -> Any:
    changed = values.clone()
    changed[first:] *= factor
    return changed


def _beyond_the_grid(got: Any, expected: Any) -> Any:
    """The output past the threads of a whole number of multiprocessors, if everything before it is right.

    The first powers past them may be too small to count as wrong. They still deviate more than those before.
    """
    wrong = ~((got - expected).abs() <= 1e-3 * expected.max())
    first = int(wrong.nonzero()[0]) if bool(wrong.any()) else 0
    begin = first // _GRID * _GRID
    if begin and first > begin:
        before, beyond = (
            float(((got - expected) / expected).abs()[part].median())
            for part in (slice(begin - _GRID, begin), slice(begin, first))
        )
        begin = begin if beyond > _MORE * before else 0
    return got[begin:] if begin else got[:0]


def _one_each(a: Any) -> Any:
    got = a.get("got", _unwritten_from(a["expected"], _GRID))
    beyond = _beyond_the_grid(got, a["expected"])
    return got if beyond.numel() and bool(_poison(beyond).all()) else None


def _no_sums_beyond(a: Any) -> Any:
    got = a.get("got", _from_there(a["expected"], _GRID, math.nan))
    beyond = _beyond_the_grid(got, a["expected"])
    return got if beyond.numel() and bool((beyond.isnan() & ~_poison(beyond)).all()) else None


def _sums_go_on(a: Any) -> Any:
    got = a.get("got", _from_there(a["expected"], _GRID, 2.0))
    beyond = _beyond_the_grid(got, a["expected"])
    return got if beyond.numel() and bool(beyond.isfinite().all()) else None


HALF = Suspect(
    "The arrays are float64, but a kernel for floats treated them as float32: it filled half of `out` from half of "
    "the inputs. A kernel is built for one type. Is there source code for each type, and if you cache kernels, is "
    "the type part of the key?",
    _halved,
)
BEYOND_THE_GRID = (
    Suspect(
        "There are more frequencies than threads, but each thread computed only one: let it continue with the "
        "frequency one grid further until none are left.",
        _one_each,
        missing=True,
    ),
    Suspect(
        "Each thread's first frequency is right, but its later ones are NaN, as from sums over no samples. Does the "
        "loop over the samples start at the first one again for each frequency?",
        _no_sums_beyond,
    ),
    Suspect(
        "Each thread's first frequency is right, but its later ones are wrong: do the sums start at 0 and is `w` "
        "read again for each frequency?",
        _sums_go_on,
    ),
)
UNWRITTEN = Suspect(
    "Every power is NaN: the kernel read memory that holds no input. Does an index pass the last sample? Is the kernel "
    "compiled for the type of these arrays? A new device array is uninitialised, too: fill `y_dot`, or leave it out.",
    _not_a_number,
)
ZEROS = Suspect(
    "The output is all zeros. Is a sum or the result stored in one variable and read from a different one?",
    lambda a: a["expected"] * 0,
)
SUSPECTS = (
    UNWRITTEN,
    ZEROS,
    Suspect(
        "This is the normalised power, 2 / Σy² times too large. The exercise requires the unnormalised power.",
        _from(lambda a: a["expected"] * 2 / (a["y"] ** 2).sum()),
    ),
    Suspect(
        "The times and the values are exchanged: the phase is `w * t[j]`, and the sums are of `y[j]`. In which order "
        "are `t` and `y` passed?",
        _from(lambda a: lombscargle(a["y"], a["t"], a["freqs"])),
    ),
    Suspect(
        "Every power is twice what it should be: halve the sum of the two terms.",
        _from(lambda a: 2 * a["expected"]),
    ),
    Suspect(
        "tau was divided by the frequency, not by twice the frequency: atan2 returns the angle 2 w tau.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(2 * cs, cc - ss) / w)),
    ),
    Suspect(
        "The angle has no factor 2 on the sum of products: 2 w tau is atan2(2 D, C - S).",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(cs, cc - ss) / (2 * w))),
    ),
    Suspect(
        "tau has the wrong sign: it is atan2(2 D, C - S) / (2 w), with the squares of the cosines first.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, -_atan2(2 * cs, cc - ss) / (2 * w))),
    ),
    Suspect(
        "The arguments of atan2 are swapped: the sine part comes first. 2 w tau is atan2(2 D, C - S).",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(cc - ss, 2 * cs) / (2 * w))),
    ),
    Suspect(
        "tau was multiplied by the frequency: `/ 2 * w` divides by 2 and then multiplies. Divide by `(2 * w)`.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(2 * cs, cc - ss) / 2 * w)),
    ),
    Suspect(
        "`w * tau` multiplies by the frequency, but this tau was never divided by it: atan2(2 D, C - S) / 2 is w tau "
        "already. Divide it by `w`, or use it without the factor `w`.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(2 * cs, cc - ss) / 2)),
    ),
    Suspect(
        "The shift is w tau, but tau was divided by the frequency and not multiplied by it again: take the cosine and "
        "the sine of `w * tau`.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(2 * cs, cc - ss) / (2 * w * w))),
    ),
    Suspect(
        "tau was not divided by `(2 * w)`: atan2 returns the angle 2 w tau.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(2 * cs, cc - ss))),
    ),
    Suspect(
        "The angle was halved twice: atan2 returns 2 w tau, and half of it is w tau.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(2 * cs, cc - ss) / (4 * w))),
    ),
    Suspect(
        "The first numerator has a wrong sign: it is the square of c Xc + s Xs, where c and s are cosine and sine of "
        "w tau.",
        _other_factors(along=-1),
    ),
    Suspect(
        "The second numerator has a wrong sign: it is the square of c Xs - s Xc, where c and s are cosine and sine "
        "of w tau.",
        _other_factors(across=1),
    ),
    Suspect(
        "The denominators have no factor 2: the product of sine and cosine enters as 2 c s D.",
        _other_factors(mixed=1),
    ),
    Suspect(
        "The denominators have a wrong sign: 2 c s D is added in the first and subtracted in the second.",
        _other_factors(mixed=-2),
    ),
    Suspect(
        "The second denominator has a wrong sign: subtract 2 c s D.",
        _other_power(_mixed_added_twice),
    ),
    Suspect(
        "tau is missing: without the time shift, cosine and sine are not orthogonal on unevenly spaced samples.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, 0 * w)),
    ),
    Suspect(
        "The cosine and the sine at the end are still those of the last sample: compute them again, from `w * tau`.",
        _from(_of_the_last_sample),
    ),
    Suspect(
        "The sums of the cosines and of the sines are exchanged: Xc is the sum of `y * cos(w * t)`, and Xs that of "
        "`y * sin(w * t)`.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xs, xc, cc, ss, cs)),
    ),
    Suspect(
        "This is the amplitude, the square root of the power: return the power itself.",
        _from(lambda a: a["expected"].sqrt()),
    ),
    *(
        Suspect(
            "Only one of the two terms is in the power. It is half the sum of the square of c Xc + s Xs and that of c "
            "Xs - s Xc, each divided by its denominator.",
            _one_term(along, across),
        )
        for along, across in ((1, 0), (2, 0), (0, 1), (0, 2))
    ),
    Suspect("The second term was subtracted from the first: add the two.", _one_term(1, -1)),
    Suspect(
        "This is the classical periodogram, |Σ y exp(iwt)|² / N. On unevenly spaced samples, the squares of the "
        "cosines and of the sines do not each sum to N / 2.",
        _from(lambda a: lombscargle(a["t"], a["y"], a["freqs"],
                                    sums_to=lambda w, xc, xs, cc, ss, cs: (xc**2 + xs**2) / (cc + ss))),
    ),
    Suspect("The last sample is missing from the sums: where does the loop over the samples end?",
            _samples(slice(0, -1))),
    Suspect("The first sample is missing from the sums: where does the loop over the samples start?",
            _samples(slice(1, None))),
    Suspect(
        "The frequencies were multiplied by 2π, as if in cycles: they are already angular.",
        _from(lambda a: lombscargle(a["t"], a["y"], 2 * math.pi * a["freqs"])),
    ),
    Suspect(
        "The phase error exceeds the budget and grows with the phase: a range reduction needs π in full precision, "
        "not 3.1416.",
        _from(lambda a: lombscargle(a["t"], a["y"], a["freqs"], turn=_short_pi), near=0.4),
    ),
    Suspect(
        "The powers are in reverse order: which index do `freqs` and `out` use?",
        _from(lambda a: a["expected"].flip(0)),
    ),
)  # fmt: skip


_OPERATIONS = 13  # per sample and frequency: phase, sine, cosine, two sums of products and three of squares


def with_numba_arrays(entry: Any, t: Any, y: Any, freqs: Any, out: Any) -> None:
    """The harness of the Numba rungs: the entry point gets Numba's device arrays, without copies."""
    from grader.worker.arrays import numba_arrays

    entry(*numba_arrays(t, y, freqs, out))


_HARNESSES: dict[str, Callable[..., None] | None] = {"numba": with_numba_arrays}


def rung(
    exercise_id: str, title: str, notebook: str, backend: Literal["torch", "numba", "cupy"], *,
    baselines: tuple[Baseline, ...], gates: tuple[Gate, ...], hints: tuple[str, ...], correctness_points: float = 2,
    float64: bool = True, harness: Callable[..., None] | None = None, suspects: tuple[Suspect, ...] = (),
    cases: tuple[Case, ...] = CASES, simulator_cases: tuple[Case, ...] = SIMULATOR_CASES, library: tuple[str, ...] = (),
    operations: Callable[[Case], int] | None = None, time_limit_s: float = 60.0,
) -> Exercise:  # fmt: skip
    """One rung as an exercise; its entry point has the exercise's name.

    Args:
        baselines: the peers of its gates; each function takes the arguments of the entry point.
        float64: whether there are also cases in float64.
        harness: by default the backend's.
        library: torch operations that would do the work.
        suspects: bugs of this rung only, tested before the common ones.
        operations: the least work, if less than a sine and a cosine per sample and frequency.
    """
    return Exercise(
        id=exercise_id,
        title=title,
        chapter="04_numba_cupy",
        notebook=notebook,
        entry=exercise_id,
        parameters=PARAMETERS,
        backend=backend,
        cases=cases + (FLOAT64_CASES if float64 else ()),
        simulator_cases=simulator_cases + (SIMULATOR_FLOAT64_CASES if float64 else ()),
        timed_cases=TIMED if gates else (),
        plot_cases=PLOT,
        oracle=oracle,
        budget=Budget(ABSOLUTE["float32"], RELATIVE["float32"]),  # each case has its own
        draw=draw,
        bytes_moved=_bytes_moved,
        operations=operations or _operations,
        limited_by="arithmetic",
        work=_pairs,
        work_unit="pairs",
        correctness_points=correctness_points,
        baselines=baselines,
        gates=gates,
        suspects=suspects + (BEYOND_THE_GRID if backend != "torch" else ()) + SUSPECTS,
        rules=Rules(library),
        harness=harness or _HARNESSES.get(backend),
        of_compiled=OF_COMPILED.get(exercise_id),
        hints=hints,
        launches=4,  # the number of bytes would suggest hundreds
        plot_axis=f"frequencies ({SAMPLES:,} samples, float32)",
        plot_value=lambda case: case.arrays[-1].shape[0],
        time_limit_s=time_limit_s,
    )


def _bytes_moved(case: Case) -> int:
    item = 8 if case.arrays[0].dtype == "float64" else 4
    return item * 2 * (case.arrays[0].shape[0] + case.arrays[-1].shape[0])


def _pairs(case: Case) -> int:
    """The number of pairs of a sample and a frequency."""
    return case.arrays[0].shape[0] * case.arrays[-1].shape[0]


def _operations(case: Case) -> int:
    return _OPERATIONS * _pairs(case)
