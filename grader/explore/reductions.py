"""How sums meet: the steps of a tree, and the lanes of a warp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from grader.explore.picture import BLUE, DARK, GREY, LIGHT, ORANGE, Picture, canvas, finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = [
    "Addressing",
    "active_warps",
    "draw_reduction_tree",
    "draw_shuffles",
]

Addressing = Literal["interleaved", "sequential"]
_MOST_THREADS = 32
_WARP = 32


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
