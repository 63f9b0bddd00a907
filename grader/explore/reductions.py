"""How sums meet: the steps of a tree, the lanes of a warp, and what float32 loses on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from grader.explore.picture import BLUE, DARK, GREY, LIGHT, ORANGE, Picture, canvas, finish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

__all__ = [
    "Addressing",
    "active_warps",
    "draw_reduction_tree",
    "draw_shuffles",
    "draw_summation_errors",
    "summation_errors",
]

Addressing = Literal["interleaved", "sequential"]
_MOST_THREADS = 32
_WARP = 32
_PARTIAL_SUMS = 4096


def _steps(threads: int, addressing: Addressing) -> list[list[tuple[int, int, int]]]:
    """Of each step, who adds: thread, its own place, the place that it adds."""
    distances = [1 << k for k in range(threads.bit_length() - 1)]
    if addressing == "sequential":
        return [[(t, t, t + d) for t in range(d)] for d in reversed(distances)]
    return [[(t, t, t + d) for t in range(0, threads, 2 * d)] for d in distances]


def active_warps(threads: int, addressing: Addressing) -> list[int]:
    """Of each step of a tree over the elements of `threads` threads, the warps in which some thread adds.

    Raises:
        ValueError: `threads` is no power of two.
    """
    _must_be_power(threads)
    return [len({thread // _WARP for thread, _, _ in step}) for step in _steps(threads, addressing)]


def _must_be_power(threads: int) -> None:
    if threads < 2 or threads & (threads - 1):
        raise ValueError(f"{threads} threads make no tree: choose a power of two, 2 or more.")


def draw_reduction_tree(threads: int = 16, addressing: Addressing = "sequential") -> Picture:
    """A tree in shared memory, a row a step; a place that is written in a step is dark, with lines from what is added.

    Raises:
        ValueError: no power of two, or more threads than can be read in a picture.
    """
    _must_be_power(threads)
    if threads > _MOST_THREADS:
        raise ValueError(f"{threads} threads are too many to draw: choose at most {_MOST_THREADS}.")
    steps = _steps(threads, addressing)
    figure, axes = canvas(0.5 * threads + 2.2, 0.95 * (len(steps) + 1))
    axes.set_xlim(-3.6, threads + 0.4)
    axes.set_ylim(1.9 * len(steps) + 1.3, -0.5)
    values = [1] * threads
    _row(axes, 0, values, set(), "1 each")
    for number, step in enumerate(steps, start=1):
        y = 1.9 * number
        for _, own, other in step:
            values[own] += values[other]
            for source in (own, other):
                colour = BLUE if source == own else ORANGE
                axes.plot([source + 0.5, own + 0.5], [y - 0.9, y], linestyle="-" if source == own else "--",
                          color=colour, linewidth=1.6)  # fmt: skip
        adding = f"{len(step)} thread{'s' if len(step) > 1 else ''}"
        _row(axes, y, values, {own for _, own, _ in step}, f"step {number}: {adding}")
    first = steps[0]
    alt = (
        f"A tree over {threads} ones in {len(steps)} steps, with {addressing} addressing. In the first step thread "
        f"{first[0][0]} adds place {first[0][2]} to place {first[0][1]}, and thread {first[-1][0]} adds place "
        f"{first[-1][2]} to place {first[-1][1]}. The number of threads that add halves with each step: "
        f"{', '.join(str(len(step)) for step in steps)}. After the last step place 0 holds {values[0]}."
    )
    return finish(figure, alt, width=min(900, 48 * threads + 130))


def _row(axes: Axes, y: float, values: Sequence[int], written: set[int], label: str) -> None:
    from matplotlib.patches import Rectangle

    for place, value in enumerate(values):
        dark = place in written
        box = Rectangle((place, y), 1, 1, facecolor=BLUE if dark else LIGHT, edgecolor=DARK, linewidth=0.8)
        axes.add_patch(box)
        colour = "white" if dark else DARK if not written and y == 0 else GREY
        axes.text(place + 0.5, y + 0.5, str(value), ha="center", va="center", fontsize=11, color=colour)
    axes.text(-0.25, y + 0.5, label, ha="right", va="center", fontsize=11, color=DARK)


def draw_shuffles(lanes: int = 8) -> Picture:
    """The steps of `__shfl_down_sync` over `lanes` lanes: what each receives, and what lane 0 holds in the end.

    Raises:
        ValueError: no power of two, or more lanes than a warp has.
    """
    _must_be_power(lanes)
    if lanes > _WARP:
        raise ValueError(f"A warp has {_WARP} lanes; {lanes} are too many.")
    offsets = [step[0][2] for step in _steps(lanes, "sequential")]
    figure, axes = canvas(0.62 * lanes + 2.6, 0.95 * (len(offsets) + 1))
    axes.set_xlim(-3.4, lanes + 0.4)
    axes.set_ylim(1.9 * len(offsets) + 1.3, -0.5)
    values = [1] * lanes
    _row(axes, 0, values, set(), "a 1 in each lane")
    for number, offset in enumerate(offsets, start=1):
        y = 1.9 * number
        received = [values[lane + offset] if lane + offset < lanes else values[lane] for lane in range(lanes)]
        values = [own + more for own, more in zip(values, received, strict=True)]
        for lane in range(lanes - offset):
            needed = lane < offset
            axes.plot([lane + offset + 0.5, lane + 0.5], [y - 0.9, y], linestyle="--" if needed else ":",
                      color=ORANGE if needed else GREY, linewidth=1.8 if needed else 0.8)  # fmt: skip
        _row(axes, y, values, set(range(offset)), f"offset {offset}")
    alt = (
        f"{len(offsets)} steps of shuffles over {lanes} lanes, with the offsets {', '.join(map(str, offsets))}. In "
        "each step every lane adds the value of the lane that is the offset further on; one that has no such lane gets "
        f"its own value back. The dark lanes hold what is needed. In the end lane 0 holds {values[0]}, the sum of all."
    )
    return finish(figure, alt, width=min(820, 56 * lanes + 200))


def summation_errors(x: Any) -> dict[str, list[tuple[int, float]]]:
    """Relative errors of the sum of the first n elements of the float32 array `x`, by method: pairs of n and error.

    n runs over the powers of 4 from 256 on. The truth is `math.fsum`'s, rounded once. "float32, compensated" is Kahan's
    summation (Further remarks on reducing truncation errors, 1965); "float32, pairwise" is numpy's own.
    """
    import math

    import numpy as np

    x = np.ascontiguousarray(x, dtype=np.float32)
    sizes = [n for n in (4**k for k in range(4, 16)) if n <= len(x)]
    running, running_double = np.cumsum(x, dtype=np.float32), np.cumsum(x, dtype=np.float64)
    compensated = _compensated(x, sizes)
    found: dict[str, list[tuple[int, float]]] = {}
    for n in sizes:
        exact = math.fsum(x[:n].tolist())
        padded = np.zeros(-(-n // _PARTIAL_SUMS) * _PARTIAL_SUMS, dtype=np.float32)
        padded[:n] = x[:n]
        sums = {
            "float32, one after the other": running[n - 1],
            f"float32, {_PARTIAL_SUMS:,} threads": padded.reshape(-1, _PARTIAL_SUMS).sum(0, dtype=np.float32).sum(),
            "float32, pairwise": x[:n].sum(dtype=np.float32),
            "float32, compensated": compensated[n],
            "float64, one after the other": running_double[n - 1],
        }
        for method, total in sums.items():
            found.setdefault(method, []).append((n, abs(float(total) - exact) / abs(exact)))
    return found


def _compensated(x: Any, sizes: Sequence[int]) -> dict[int, float]:
    import numpy as np

    zero = np.float32(0)
    total, lost, found, wanted = zero, zero, {}, set(sizes)
    for number, value in enumerate(x[: max(sizes, default=0)], start=1):
        corrected = value - lost
        after = total + corrected
        lost = (after - total) - corrected
        total = after
        if number in wanted:
            found[number] = float(total)
    return found


_LINES = (("o", "-", ORANGE), ("s", "--", BLUE), ("^", "-.", DARK), ("D", ":", GREY), ("v", (0, (1, 1)), "#009E73"))
_LEAST = 1e-17  # errors of 0 are drawn here


def draw_summation_errors(errors: Mapping[str, Sequence[tuple[int, float]]]) -> Picture:
    """What `summation_errors` found, over n, on two logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.3), layout="constrained")
    axes = figure.add_subplot()
    for (method, pairs), (marker, line, colour) in zip(errors.items(), _LINES, strict=False):
        sizes = [n for n, _ in pairs]
        axes.plot(sizes, [max(error, _LEAST) for _, error in pairs], marker=marker, linestyle=line, color=colour,
                  label=method)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.axhline(2**-24, color=DARK, linewidth=0.8)
    axes.text(axes.get_xlim()[1], 2**-24 * 1.4, "one rounding of float32 ", fontsize=9, ha="right", va="bottom")
    axes.set(xlabel="n, elements", ylabel="relative error of the sum\n(0 is drawn at the lower edge)")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=10, frameon=False)
    worst = "; ".join(
        f"{method}: {pairs[-1][1]:.0e}" if pairs[-1][1] else f"{method}: none" for method, pairs in errors.items()
    )
    last = max((pairs[-1][0] for pairs in errors.values()), default=0)
    alt = f"Relative error of a sum over its length, a line for each method. At {last:,} elements: {worst}."
    return finish(figure, alt, width=820)
