"""The number of multiprocessors: 1 in the simulators, so that their grids are small, and far more on a GPU.

So a block of 20 threads per multiprocessor runs here, and a GPU refuses it.
"""

from __future__ import annotations

from math import prod
from typing import Any

from grader.words import plural

_OF_A_GPU = 132  # of an H100
_MOST_THREADS = 1024  # of a block
_USUAL_BLOCKS = (32, 64, 128, 256, 512, 1024)  # as a grid they are a sign of an exchange


class PerMultiprocessor(int):
    """A product with the number of multiprocessors; what is computed from it in another way is an ordinary number."""

    def __mul__(self, other: Any) -> Any:
        return PerMultiprocessor(int(self) * int(other)) if isinstance(other, int) else NotImplemented

    __rmul__ = __mul__


MULTIPROCESSORS = PerMultiprocessor(1)


def exchanged(grid: Any, block: Any) -> str:
    """Why a GPU refuses a launch whose block has a size per multiprocessor and whose grid has that of a usual block.

    "" for any other launch, also for most blocks of `min(1024, …)`, which is such a product here and is none on a GPU.
    """
    threads = prod(map(int, block)) * _OF_A_GPU
    per = [any(isinstance(each, PerMultiprocessor) for each in sizes) for sizes in (grid, block)]
    if per != [False, True] or threads <= _MOST_THREADS or prod(map(int, grid)) not in _USUAL_BLOCKS:
        return ""
    here = plural(prod(map(int, block)), "thread")
    return (
        f"A block of this launch has {here} per multiprocessor, on an H100 {threads:,}, and a GPU allows at most "
        f"{_MOST_THREADS:,}: are grid and block exchanged?"
    )
