"""Which of the 32 banks of shared memory a warp meets, how often, and what a padded row does about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from grader.explore.choices import Choices
from grader.explore.picture import BLUE, DARK, GREY, LIGHT, ORANGE, PALE, Picture, canvas, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BANKS", "BankAccess", "bank_access", "draw_banks", "draw_padded_tile", "explore_banks"]

BANKS = 32  # each gives one 4-byte word a cycle: word w lies in bank w % 32
_WARP = 32
_SMALL = 8  # banks, rows and columns of the small tile that can be read


@dataclass(frozen=True)
class BankAccess:
    """One load of a warp from shared memory: thread t takes the word `t * step`."""

    step: int

    @cached_property
    def words(self) -> tuple[int, ...]:
        return tuple(thread * self.step for thread in range(_WARP))

    @cached_property
    def per_bank(self) -> tuple[int, ...]:
        """How many different words are asked of each bank; a word that several threads want counts once."""
        return tuple(len({word for word in self.words if word % BANKS == bank}) for bank in range(BANKS))

    @property
    def ways(self) -> int:
        """Cycles that the load takes: the most words that one bank must give."""
        return max(self.per_bank)


def bank_access(step: int) -> BankAccess:
    """One load by the 32 threads of a warp, whose words lie `step` words of 4 bytes apart.

    Down a column of `float tile[32][w]` the step is w, along a row it is 1.

    Raises:
        ValueError: a step below 0.
    """
    if step < 0:
        raise ValueError("step must be at least 0.")
    return BankAccess(step)


def draw_banks(step: int = 1) -> Picture:
    """32 threads above 32 banks, a line from each thread to its bank, and what each bank must give.

    Raises:
        ValueError: as `bank_access`.
    """
    from matplotlib.patches import Rectangle

    access = bank_access(step)
    figure, axes = canvas(10.4, 3.3)
    axes.set_xlim(-3.4, BANKS + 0.4)
    axes.set_ylim(7.5, -0.3)
    for y, name in ((0.5, "thread"), (4.5, "bank"), (5.7, "words")):
        axes.text(-0.3, y, name, ha="right", va="center", fontsize=11, color=DARK)
    for thread, word in enumerate(access.words):
        bank = word % BANKS
        crowded = access.per_bank[bank] > 1
        axes.plot([thread + 0.5, bank + 0.5], [1, 4], color=ORANGE if crowded else BLUE, linewidth=1.6,
                  linestyle=(0, (4, 1.5)) if crowded else "solid")  # fmt: skip
    for at in range(BANKS):
        words = access.per_bank[at]
        axes.add_patch(Rectangle((at, 0), 1, 1, facecolor=LIGHT, edgecolor=GREY, linewidth=0.7))
        axes.add_patch(
            Rectangle((at, 4), 1, 1, facecolor=ORANGE if words > 1 else PALE if words else "white",
                      edgecolor=DARK if words else GREY, linewidth=0.9, hatch="////" if words > 1 else None)
        )  # fmt: skip
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if words > 1 else None
        axes.text(at + 0.5, 0.5, str(at), ha="center", va="center", fontsize=9, color=DARK)
        axes.text(at + 0.5, 4.5, str(at), ha="center", va="center", fontsize=9, color=DARK, bbox=white)
        axes.text(at + 0.5, 5.7, str(words or "–"), ha="center", va="center", fontsize=9.5, color=DARK,
                  weight="bold" if words > 1 else "normal")  # fmt: skip
    axes.text(BANKS, 6.9, _cost(access), ha="right", va="center", fontsize=12, weight="bold", color=DARK)
    busy = sum(1 for words in access.per_bank if words)
    alt = (
        f"{_WARP} threads of a warp take words that lie {step} apart. They meet {busy} of {BANKS} banks, "
        f"and the busiest bank must give {access.ways} words: {_cost(access)}."
    )
    return finish(figure, alt, width=820)


def _cost(access: BankAccess) -> str:
    return "no conflict, 1 cycle" if access.ways == 1 else f"{access.ways}-way conflict, {access.ways} cycles"


def explore_banks() -> Choices:
    """`draw_banks` with a slider for the step."""
    return Choices(draw_banks, {"step": (32, *range(32), *range(33, 65))}, {"step": "step, in words of 4 bytes"})


def draw_padded_tile(padding: int = 1) -> Picture:
    """A tile without and with `padding` words a row, on a small machine of 8 banks. Numbers are banks.

    Raises:
        ValueError: a padding below 1, or more than can be read in a picture.
    """
    if not 1 <= padding <= _SMALL:
        raise ValueError(f"padding must be at least 1; choose at most {_SMALL}.")
    figure, axes = canvas(0.42 * (2 * _SMALL + padding + 5), 0.42 * (_SMALL + 3.2))
    axes.set_xlim(-1, 2 * _SMALL + padding + 4)
    axes.set_ylim(_SMALL + 1.9, -1.3)
    axes.set_aspect("equal")
    _tile(axes, 0, _SMALL)
    _tile(axes, _SMALL + 3, _SMALL + padding)
    unpadded, padded = (max(_small_counts(width)) for width in (_SMALL, _SMALL + padding))
    alt = (
        f"Two tiles of {_SMALL} by {_SMALL} elements on a machine with {_SMALL} banks. Rows of {_SMALL}: the marked "
        f"column lies in one bank, {unpadded} words of it. Rows of {_SMALL + padding}: the column is spread, and no "
        f"bank has more than {padded} of it."
    )
    return finish(figure, alt, width=int(38 * (2 * _SMALL + padding + 5)))


def _small_counts(width: int) -> list[int]:
    banks = [row * width % _SMALL for row in range(_SMALL)]
    return [banks.count(bank) for bank in range(_SMALL)]


def _tile(axes: Axes, left: int, width: int) -> None:
    from matplotlib.patches import Rectangle

    marked = 2
    most = max(_small_counts(width))
    for row in range(_SMALL):
        for column in range(width):
            outside, chosen = column >= _SMALL, column == marked
            colour = (ORANGE if most > 1 else PALE) if chosen else "white" if outside else LIGHT
            cell = Rectangle((left + column, row), 1, 1, facecolor=colour, edgecolor=DARK if chosen else GREY,
                             linewidth=1.6 if chosen else 0.6)  # fmt: skip
            if outside:
                cell.set(hatch="////", linestyle="--")
            axes.add_patch(cell)
            white = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if outside else None
            bank = (row * width + column) % _SMALL
            axes.text(left + column + 0.5, row + 0.5, str(bank), ha="center", va="center", fontsize=10,
                      weight="bold" if chosen else "normal", color=DARK, bbox=white)  # fmt: skip
    said = f"the column: {most} words in one bank" if most > 1 else "the column: each bank once"
    axes.text(left + width / 2, -0.7, f"rows of {width}", ha="center", va="center", fontsize=12, color=DARK)
    axes.text(left + width / 2, _SMALL + 0.8, said, ha="center", va="center", fontsize=11, color=DARK)
