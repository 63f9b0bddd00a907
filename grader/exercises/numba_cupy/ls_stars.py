"""Search many stars: the Lomb–Scargle power of a batch of uneven series, one row of frequencies per star.

The series lie one after another in `t` and `y`: star s has the samples from `offsets[s]` to `offsets[s + 1]`. A star
with fewer than 3 samples has the power 0 everywhere. Source of the formula: see `ladder_cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Suspect
from grader.exercises.numba_cupy import ladder_cases
from grader.words import plural

FEWEST = 3  # samples; with fewer, a sine fits exactly at every frequency
_ENOUGH = 200  # frequencies: with fewer, two bugs may give the same output
_APART = 0.6  # between the times of so few samples: random times make the sums of squares ill-conditioned
_NEAR = 0.02  # the largest deviation from a bug's output, as a share of the bug's effect
_LENGTHS: dict[str, tuple[int, ...]] = {}  # of the series of each case, by its name


def _case(lengths: tuple[int, ...], frequencies: int) -> Case:
    stars, samples = len(lengths), sum(lengths)
    measured = plural(max(lengths), "sample") if len(set(lengths)) == 1 else f"{min(lengths)} … {max(lengths)} samples"
    name = f"{plural(stars, 'star')}, {measured} × {frequencies:,} frequencies"
    _LENGTHS[name] = lengths
    arrays = (
        Array("t", (samples,), "float32", grows=None),
        Array("y", (samples,), "float32", grows=None),
        Array("offsets", (stars + 1,), "int32", grows=None),
        Array("freqs", (frequencies,), "float32", grows=None),
        Array("out", (stars, frequencies), "float32", role="out", grows=None),
    )
    share, relative = ladder_cases.ABSOLUTE["float32"], ladder_cases.RELATIVE["float32"]
    return Case(name, arrays, budget=Budget(share * max(lengths), relative))


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    """One series per star, drawn as for the ladder, at the frequencies of the first; offsets are int32."""
    import torch

    lengths, count = _LENGTHS[case.name], case.arrays[-1].shape[1]
    drawn = [ladder_cases.draw(ladder_cases.ladder_case(max(n, 1), count), source, machine) for n in lengths]
    for each, n in zip(drawn, lengths, strict=True):
        if n == FEWEST:
            each["t"] = 0.1 * each["t"][0] + _APART * torch.arange(FEWEST, device=source.device)
    series = {name: torch.cat([each[name][:n] for each, n in zip(drawn, lengths, strict=True)]) for name in ("t", "y")}
    offsets = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32, device=source.device)
    return series | {"offsets": offsets, "freqs": drawn[0]["freqs"]}


def _batch(a: Any, power: Callable[..., Any]) -> Any:
    """The rows that `power(t, y, freqs)` returns for each star's samples; 0 with too few samples."""
    import torch

    found = [
        power(a["t"][first:last], a["y"][first:last], a["freqs"]) if last - first >= FEWEST else 0 * a["freqs"]
        for first, last in _ranges(a)
    ]
    return torch.stack(found)


def _ranges(a: Any) -> list[tuple[int, int]]:
    return list(pairwise(int(each) for each in a["offsets"].tolist()))


def _oracle(inputs: Any) -> Any:
    return _batch(inputs, ladder_cases.lombscargle)


def _bug(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A bug's output; the submission's own if it is equal within float32, because powers can be tiny."""

    def output(a: Any) -> Any:
        if a["freqs"].numel() < _ENOUGH:
            return None
        bug, got = change(a), a.get("got")
        if bug is None:
            return None
        effect = min((bug - a["expected"]).norm(), bug.norm())
        return got if got is not None and bool((got - bug).norm() <= _NEAR * effect) else bug

    return output


def _of_the_next_star(a: Any) -> Any:
    rows = a["expected"].clone()
    rows[:-1] = a["expected"][1:]
    return rows


def _of_the_star_before(a: Any) -> Any:
    if len(a["expected"]) == 1:
        return None
    rows = 0 * a["expected"]
    rows[1:] = a["expected"][:-1]
    return rows


def _from_the_first_sample(a: Any) -> Any:
    import torch

    rows = []
    for first, last in _ranges(a):
        t, y = a["t"][: last - first], a["y"][: last - first]
        few = last - first < FEWEST
        rows.append(0 * a["freqs"] if few else ladder_cases.lombscargle(t, y, a["freqs"]))
    return torch.stack(rows)


def _zeros(a: Any) -> Any:
    """Zeros for several stars: the only star may also have got no samples."""
    return 0 * a["expected"] if len(a["expected"]) > 1 else None


def _as_long_as_the_longest(a: Any) -> Any:
    import torch

    longest = max(last - first for first, last in _ranges(a))
    total = a["t"].numel()
    ends = [(first, min(first + longest, total)) for first, _ in _ranges(a)]
    return torch.stack(
        [
            ladder_cases.lombscargle(a["t"][first:last], a["y"][first:last], a["freqs"])
            if last - first >= FEWEST
            else 0 * a["freqs"]
            for first, last in ends
        ]
    )


def _times_of_the_first(a: Any) -> Any:
    import torch

    rows = []
    for first, last in _ranges(a):
        t = a["t"][: last - first]
        few = last - first < FEWEST
        rows.append(0 * a["freqs"] if few else ladder_cases.lombscargle(t, a["y"][first:last], a["freqs"]))
    return torch.stack(rows)


def _sums_go_on(a: Any) -> Any:
    import torch

    rows = []
    for first, last in _ranges(a):
        few = last - first < FEWEST
        rows.append(0 * a["freqs"] if few else ladder_cases.lombscargle(a["t"][:last], a["y"][:last], a["freqs"]))
    return torch.stack(rows)


def _all_samples(a: Any) -> Any:
    row = ladder_cases.lombscargle(a["t"], a["y"], a["freqs"])
    return row.expand(len(_ranges(a)), -1).clone()


def _exchanged(a: Any) -> Any:
    return a["expected"].T.reshape(a["expected"].shape)


def _without(part: slice) -> Callable[[Any], Any]:
    return lambda a: _batch(a, lambda t, y, freqs: ladder_cases.lombscargle(t[part], y[part], freqs))


def _without_tau(a: Any) -> Any:
    def sums_to(w: Any, xc: Any, xs: Any, cc: Any, ss: Any, cs: Any) -> Any:
        return ladder_cases.power(w, xc, xs, cc, ss, cs, 0 * w)

    return _batch(a, lambda t, y, freqs: ladder_cases.lombscargle(t, y, freqs, sums_to=sums_to))


def _last_missing(a: Any) -> Any:
    rows = a["expected"].clone()
    if len(rows) > 1:
        rows[-1] = float("nan")
    return rows


def _enough_are_zero(a: Any) -> Any:
    """Zeros for stars with just enough samples, as with `<=` in place of `<`."""
    rows = a["expected"].clone()
    enough = [row for row, (first, last) in enumerate(_ranges(a)) if last - first == FEWEST]
    rows[enough] = 0
    return rows if enough else None


def _one_too_many(a: Any) -> Any:
    """The samples of the next star begin too early. The last star reads past the end, so its row may hold anything."""
    rows, got = a["expected"].clone(), a.get("got")
    for row, (first, last) in enumerate(_ranges(a)[:-1]):
        if last - first >= FEWEST:
            part = slice(first, last + 1)
            rows[row] = ladder_cases.lombscargle(a["t"][part], a["y"][part], a["freqs"])
    if len(rows) < 2 or a["freqs"].numel() < _ENOUGH:
        return None
    if got is None:
        return rows
    long = [row for row, (first, last) in enumerate(_ranges(a)[:-1]) if last - first >= FEWEST]
    near = (got - rows)[long].norm() <= _NEAR * (rows - a["expected"])[long].norm()
    return got if bool(near) else None


def _constant_rows(a: Any) -> Any:
    got = a.get("got", a["expected"][:, :1].expand_as(a["expected"]))
    if a["freqs"].numel() < _ENOUGH or not bool(got.isfinite().all()) or not got.any():
        return None
    return got if bool(got.isclose(got[:, :1], 1e-4, 1e-6).all()) else None


def _only_the_first(a: Any) -> Any:
    """The submission's output, if only the first star is right."""
    got, expected = a.get("got"), a["expected"]
    if len(expected) < 2 or a["freqs"].numel() < _ENOUGH:
        return None
    if got is None:
        return expected[:1].expand_as(expected)
    wrong = (got - expected).abs() > 1e-3 * expected.abs().amax(1, keepdim=True)
    wrong |= ~got.isfinite()
    return got if not bool(wrong[0].any()) and bool((wrong.double().mean(1)[1:] > 0.5).all()) else None


def _few_are_not_zero(a: Any) -> Any:
    """The submission's output, if only the rows of stars with too few samples differ."""
    few = [last - first < FEWEST for first, last in _ranges(a)]
    if not any(few):
        return None
    others = [row for row, is_few in enumerate(few) if not is_few]
    got = a.get("got", a["expected"] * float("nan")).clone()
    if "got" not in a:
        got[others] = a["expected"][others]
    scale = 1e-3 * a["expected"].abs().max()
    return got if bool(((got - a["expected"])[others].abs() <= scale).all()) else None


_SUSPECTS = (
    Suspect(
        "The last star was never computed: `offsets` has one element more than there are stars, and `out` has one row "
        "per star. How many rows does your grid cover?",
        _last_missing,
        missing=True,
    ),
    Suspect("The output is all zeros. Is the result stored in `out`?", _zeros),
    Suspect(
        "The powers are in the wrong order: row s of `out` belongs to star s, so frequency i of star s is at "
        "`s * frequencies + i`.",
        _bug(_exchanged),
    ),
    Suspect(
        "Each star has the power of the next one: star s has the samples from `offsets[s]` to `offsets[s + 1]`.",
        _bug(_of_the_next_star),
    ),
    Suspect(
        "Each star has the power of the one before it, and the first star has no samples: star s has those from "
        "`offsets[s]` to `offsets[s + 1]`.",
        _bug(_of_the_star_before),
    ),
    Suspect(
        "Every star has the right number of samples, but they are the first ones of `t` and `y`: those of star s "
        "begin at `offsets[s]`.",
        _bug(_from_the_first_sample),
    ),
    Suspect(
        "Every star was given all samples. Star s has only those from `offsets[s]` to `offsets[s + 1]`.",
        _bug(_all_samples),
    ),
    Suspect(
        "The first star is right, but each later one also has the samples of the stars before it. Do the sums start at "
        "0 for each star, and the samples at `offsets[s]`?",
        _bug(_sums_go_on),
    ),
    Suspect(
        "Every star was given as many samples as the longest one: each star ends at its own `offsets[s + 1]`.",
        _bug(_as_long_as_the_longest),
    ),
    Suspect(
        "The values are each star's own, but the times are those of the first star: index `t` and `y` alike, from "
        "`offsets[s]`.",
        _bug(_times_of_the_first),
    ),
    Suspect(
        "The last sample of each star is missing: the loop ends before `offsets[s + 1]`, and includes the sample just "
        "before it.",
        _bug(_without(slice(0, -1))),
    ),
    Suspect(
        "The first sample of each star is missing: the loop starts at `offsets[s]`.", _bug(_without(slice(1, None)))
    ),
    Suspect(
        "Each star also has the first sample of the next one: the loop ends before `offsets[s + 1]`.",
        _one_too_many,
    ),
    Suspect(
        "tau is missing: without the time shift, cosine and sine are not orthogonal on unevenly spaced samples.",
        _bug(_without_tau),
    ),
    Suspect(
        f"Only the stars with fewer than {FEWEST} samples are wrong. Their power is 0 at every frequency.",
        _few_are_not_zero,
    ),
    Suspect(
        f"Only the stars with exactly {FEWEST} samples are wrong: their power is 0 here, but {FEWEST} samples are "
        "enough.",
        _bug(_enough_are_zero),
    ),
    Suspect(
        "Every frequency of a star has the same power: is `w` that of the thread's own frequency?",
        _constant_rows,
    ),
    Suspect(
        "The first star is right and later ones are wrong. Their samples begin at `offsets[s]`, not at 0, and end "
        "before `offsets[s + 1]`: does every index into `t` and `y` run from the one to the other?",
        _only_the_first,
    ),
)


def _in_any_language(entry: Any, t: Any, y: Any, offsets: Any, freqs: Any, out: Any) -> None:
    """The harness: the arrays are of the submission's library."""
    from grader.worker.arrays import call

    call(entry, t, y, offsets, freqs, out)


def _pairs(case: Case) -> int:
    return case.arrays[0].shape[0] * case.arrays[3].shape[0]


LS_STARS = Exercise(
    id="ls_stars",
    title="Search many stars",
    chapter="04_numba_cupy",
    notebook="05_search_many_stars",
    entry="ls_stars",
    parameters=("t", "y", "offsets", "freqs", "out"),
    backend="cupy",
    cases=(
        _case((70, 41, 300, 25, 128), 1000),
        _case((64,), 33),
        _case((50, 0, 33, 2, 1, 3, 90), 259),
        _case(tuple(20 + 37 * star % 301 for star in range(60)), 1_001),
    ),
    simulator_cases=(
        _case((70, 41, 130, 25), 259),
        _case((37,), 33),
        _case((50, 0, 33, 2, 1, 3, 40), 259),
        _case((24, 40), 1_100),
    ),
    timed_cases=(),  # a gate has to be measured first
    plot_cases=(),
    oracle=_oracle,
    budget=Budget(ladder_cases.ABSOLUTE["float32"], ladder_cases.RELATIVE["float32"]),  # each case has its own
    draw=_draw,
    bytes_moved=lambda case: 4 * sum(array.shape[0] * (array.shape[1:] or (1,))[0] for array in case.arrays),
    operations=lambda case: 13 * _pairs(case),
    correctness_points=6,
    suspects=_SUSPECTS,
    harness=_in_any_language,
    hints=(
        "A grid with two axes: `blockIdx.y` is the star, and x goes over the frequencies.",
        "`for (int j = offsets[star]; j < offsets[star + 1]; ++j)` goes over the star's own samples.",
        "Frequency i of a star is at `out[star * frequencies + i]`. With fewer than 3 samples, write 0 there.",
    ),
    limited_by="arithmetic",
    work=_pairs,
    work_unit="pairs",
    time_limit_s=180.0,  # as for `ls_open`: any language
)
