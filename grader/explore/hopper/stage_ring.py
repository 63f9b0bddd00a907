"""A producer and a consumer with a ring of stages in shared memory: a model of when each works, and its picture."""

from __future__ import annotations

from dataclasses import dataclass

from grader.explore.drawing.displays import BLUE, DARK, ORANGE, PALE, Picture, canvas, finish, rectangle

_FLIGHT, _APART, _MULTIPLY, _STORE = 4, 1, 2, 4  # units of time: a copy's flight, its distance from the one before, …
_TILES, _STEPS = 2, 6


@dataclass(frozen=True)
class Ring:
    """When each step's copy starts and arrives and its multiplication starts and ends, and when each tile is stored."""

    stages: int
    steps: tuple[tuple[int, int, int, int], ...]
    stores: tuple[tuple[int, int], ...]

    @property
    def length(self) -> int:
        return self.stores[-1][1]

    @property
    def busy(self) -> float:
        """The share of the time that the tensor cores are busy."""
        return len(self.steps) * _MULTIPLY / self.length


def ring(stages: int) -> Ring:
    """Run a producer and a consumer on two tiles of six steps. The producer waits for an empty stage, nothing else.

    Raises:
        ValueError: `stages` is not 1 to 6.
    """
    if not 1 <= stages <= _STEPS:
        raise ValueError(f"stages must be 1 to {_STEPS}.")
    steps: list[tuple[int, int, int, int]] = []
    stores: list[tuple[int, int]] = []
    now = 0  # of the consumer
    for step in range(_TILES * _STEPS):
        start = max(steps[step - stages][3] if step >= stages else 0, steps[-1][0] + _APART if steps else 0)
        arrival = start + _FLIGHT
        begin = max(now, arrival)
        now = begin + _MULTIPLY
        steps.append((start, arrival, begin, now))
        if step % _STEPS == _STEPS - 1:
            stores.append((now, now + _STORE))
            now += _STORE
    return Ring(stages, tuple(steps), tuple(stores))


def draw_ring(stages: int = 4) -> Picture:
    """Draw the ring of stages over time: copies in flight, full stages, multiplications, and the stores of two tiles.

    Raises:
        ValueError: as for `ring`.
    """
    found = ring(stages)
    figure, axes = canvas(11.0, 0.5 * stages + 2.0)
    axes.set_xlim(-6.0, found.length + 0.6)
    axes.set_ylim(stages + 3.0, -0.6)
    for stage in range(stages):
        axes.text(-0.3, stage + 0.5, f"stage {stage}", ha="right", va="center", fontsize=11, color=DARK)
    axes.text(-0.3, stages + 0.8, "consumer", ha="right", va="center", fontsize=11, color=DARK)
    for step, (start, arrival, begin, end) in enumerate(found.steps):
        row = step % stages
        for span, colour, hatch in (
            ((start, arrival), ORANGE, "////"),
            ((arrival, begin), PALE, ""),
            ((begin, end), BLUE, ""),
        ):
            rectangle(axes, (span[0], row + 0.08), span[1] - span[0], 0.84, facecolor=colour, edgecolor=DARK,
                      linewidth=0.8, hatch=hatch or None)  # fmt: skip
        for y in (row, stages + 0.3):
            rectangle(axes, (begin, y + 0.08), end - begin, 0.84, facecolor=BLUE, edgecolor=DARK, linewidth=0.8)
            axes.text(
                (begin + end) / 2, y + 0.5, str(step % _STEPS), ha="center", va="center", fontsize=10, color="white"
            )
    for start, end in found.stores:
        rectangle(axes, (start, stages + 0.38), end - start, 0.84, facecolor="#D6EFD8", edgecolor=DARK, hatch="....",
                  linewidth=0.8)  # fmt: skip
    legend = "hatched: copy in flight    pale: full, waiting    blue: multiplied    dotted: the tile's store"
    axes.text(0, stages + 2.3, legend, ha="left", va="center", fontsize=10.5, color=DARK)
    alt = (
        f"A ring of {stages} stages over time, for two tiles of {_STEPS} steps. A copy into a stage starts as soon as "
        f"the stage is empty, so the second tile's copies start while the first tile is stored. All is done after "
        f"{found.length} units of time; the tensor cores are busy in {found.busy:.0%} of them."
    )
    return finish(figure, alt, width=860)
