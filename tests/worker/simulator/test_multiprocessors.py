"""Grid and block are exchanged only if the block, and not the grid, has a size per multiprocessor."""

import pytest

from grader.worker.simulator.multiprocessors import MULTIPROCESSORS as COUNT
from grader.worker.simulator.multiprocessors import exchanged


@pytest.mark.parametrize(
    ("grid", "block", "refused"),
    [
        ((128,), (20 * COUNT,), True),
        ((128, 1, 1), (COUNT * 16, 1, 1), True),
        ((128,), (65_536 // (20 * COUNT),), False),
        ((20 * COUNT,), (128,), False),
        ((-(-1000 // (20 * COUNT)),), (20 * COUNT,), False),
        ((128,), (4 * COUNT,), False),
        ((20 * COUNT // 2,), (20 * COUNT,), False),
        ((128,), (min(1024, int(20 * COUNT)),), False),
    ],
)
def test_a_block_per_multiprocessor_is_refused(grid, block, refused):
    """A block of 4 threads per multiprocessor fits on a GPU, too."""
    assert bool(exchanged(grid, block)) == refused


def test_it_is_a_number():
    """Floats make floats of it, and it is printed as an int."""
    assert (20 * COUNT, COUNT * 0.5, str(3 * COUNT)) == (20, 0.5, "3")
