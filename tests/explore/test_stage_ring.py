"""The ring of stages: when its producer and its consumer wait."""

from __future__ import annotations

import pytest

from grader.explore.hopper.stage_ring import draw_ring, ring


def test_a_copy_waits_for_an_empty_stage_and_a_product_for_a_full_one() -> None:
    """No stage is overwritten before it was multiplied, and the tensor cores do one thing at a time."""
    for stages in range(1, 7):
        found = ring(stages)
        for step, (start, arrival, begin, end) in enumerate(found.steps):
            assert start < arrival <= begin < end
            if step >= stages:
                assert start >= found.steps[step - stages][3]
            if step:
                assert begin >= found.steps[step - 1][3]
    assert ring(4).steps[6][0] < ring(4).stores[0][0]  # the next tile's copies do not wait for the store
    assert ring(1).length > ring(2).length > ring(3).length == ring(6).length
    assert f"after {ring(4).length} units" in draw_ring(4).alt
    with pytest.raises(ValueError, match="1 to 6"):
        ring(7)
