"""Drawings of a matrix product: tile order and cache hits, the loop along K, and the pipeline's stages."""

from __future__ import annotations

import pytest

from grader.explore import (
    draw_grouped_order,
    draw_pipeline,
    draw_thread_tile,
    draw_tile_loop,
    draw_waves,
    explore_grouped_order,
    explore_pipeline,
    grouped_order,
)
from grader.explore.memory.tiled_matmul import _tile, draw_ring, pipeline, ring, schedule


@pytest.mark.parametrize("group", [1, 2, 5, 8, 48, 64, 100])
def test_every_tile_is_taken_once(group: int) -> None:
    """This includes groups where the last one has fewer rows than the others."""
    everywhere = {(row, column) for row in range(64) for column in range(64)}
    assert {_tile(number, group) for number in range(64 * 64)} == everywhere


def test_the_first_wave_is_counted() -> None:
    """132 programs in row order cover three rows and need every column; in groups of 8 they need 17 columns."""
    assert grouped_order(1).distinct == 3 + 64
    assert grouped_order(8).distinct == 8 + 17
    assert grouped_order(64).distinct == 64 + 3


def test_the_cache_misses_each_tile_once_at_least() -> None:
    """Both operands must be read, 2 × 64 × 128 tiles, and at most half of the loads miss."""
    for group in (1, 8, 64):
        order = grouped_order(group)
        assert 2 * 64 * 128 <= order.misses <= order.loads // 2
        assert order.hit_rate == 1 - order.misses / order.loads


def test_a_square_wave_misses_least() -> None:
    """The best groups are about as high as a wave is wide. Row order and column order miss equally often."""
    misses = {group: grouped_order(group).misses for group in (1, 4, 8, 16, 64)}
    assert min(misses, key=lambda group: misses[group]) in (8, 16)
    assert misses[1] == pytest.approx(misses[64], rel=1e-3)
    assert misses[1] > 2 * misses[8]


def test_the_picture_says_what_is_counted() -> None:
    """The alt text has the numbers of the simulation."""
    order, alt = grouped_order(8), draw_grouped_order(8).alt
    assert f"{order.hit_rate:.1%} of the tile loads hit in L2" in alt
    assert f"{order.dram_gib:.2f} GiB come from DRAM" in alt
    assert explore_grouped_order().first.alt == alt


@pytest.mark.parametrize(("stages", "length"), [(1, 32), (2, 17), (3, 13), (4, 11)])
def test_stages_hide_the_copies(stages: int, length: int) -> None:
    """With one stage, each of 8 steps takes 3 + 1 units; with four, only the first copy delays the products."""
    found = pipeline(stages)
    assert found.length == length
    assert found.busy == 8 / length
    assert f"with {stages} stage" in draw_pipeline(stages).alt


@pytest.mark.parametrize("stages", range(1, 6))
def test_no_buffer_is_overwritten_while_it_is_needed(stages: int) -> None:
    """A product begins after its copy, and the next copy into that buffer begins after the product."""
    found = pipeline(stages)
    for step in range(8):
        assert found.products[step][0] >= found.copies[step][1]
        if step >= stages:
            assert found.copies[step][0] >= found.products[step - stages][1]


def test_the_loop_is_drawn_at_each_step() -> None:
    """The alt text follows the step, and the slider starts at the notebook's number of stages."""
    assert "It now multiplies tile 3 of each; 3 of 5 are done" in draw_tile_loop(3).alt
    assert "with 3 stages" in explore_pipeline().first.alt


@pytest.mark.parametrize(("tiles", "sms"), [(10, 4), (8, 4), (3, 4), (1, 1)])
def test_a_persistent_kernel_stores_a_tile_while_it_loads_the_next(tiles: int, sms: int) -> None:
    """It saves one epilogue per tile but the last of each SM; a single wave gains nothing."""
    plain, persistent = schedule(tiles, sms, False), schedule(tiles, sms, True)
    waves = -(-tiles // sms)
    assert plain.length - persistent.length == waves - 1
    assert persistent.busy >= plain.busy
    assert f"{plain.length} units" in draw_waves(tiles, sms).alt


@pytest.mark.parametrize("persistent", [False, True])
def test_an_sm_multiplies_one_tile_at_a_time(persistent: bool) -> None:
    """The main loops of one SM's tiles do not overlap, and each follows its own prologue."""
    found = schedule(10, 4, persistent)
    for tile, (fill, main, store) in enumerate(found.starts):
        assert fill < main < store
        if tile >= 4:
            assert main >= found.starts[tile - 4][2]


@pytest.mark.parametrize(
    "call", [lambda: grouped_order(0), lambda: draw_tile_loop(5), lambda: draw_pipeline(0), lambda: draw_waves(0)]
)
def test_what_cannot_be_drawn_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    """The message says which numbers are allowed."""
    with pytest.raises(ValueError, match="must be"):
        call()


def test_a_thread_with_more_sums_reads_less_for_each() -> None:
    """The picture says how many reads serve how many products, and refuses what it cannot draw."""
    for each, said in ((1, "1 multiplication"), (4, "16 multiplications"), (8, "64 multiplications")):
        picture = draw_thread_tile(each)
        assert f"{2 * each} in all" in picture.alt
        assert said in picture.alt
    for each in (0, 9):
        with pytest.raises(ValueError, match="each must be 1 to 8"):
            draw_thread_tile(each)


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
