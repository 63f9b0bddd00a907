"""Reductions: drawn trees add up, and the rungs give means."""

from __future__ import annotations

import re

import pytest
import torch

from grader.explore import (
    active_warps,
    compare_rungs,
    draw_reduction_tree,
    draw_shuffles,
    measure_rungs,
    run_rung,
    show_rung,
)
from grader.explore.reductions import RUNGS, TIMED, RungSpeeds

ON = "cuda" if torch.cuda.is_available() else "cpu"
RIGHT = [name for name in RUNGS if name != "tree without barriers"]


@pytest.mark.parametrize("addressing", ["sequential", "interleaved"])
@pytest.mark.parametrize("threads", [2, 16, 32])
def test_a_drawn_tree_ends_with_the_sum_of_all(threads: int, addressing: str) -> None:
    """The last number in place 0 is that of the elements, in as many steps as halvings."""
    picture = draw_reduction_tree(threads, addressing)
    assert picture.alt.endswith(f"place 0 holds {threads}.")
    assert f"in {threads.bit_length() - 1} steps" in picture.alt


def test_neighbours_first_keeps_every_warp_busy() -> None:
    """Halves first frees a warp as soon as it can; neighbours first frees none until one thread is left in each."""
    assert active_warps(256, "sequential") == [4, 2, 1, 1, 1, 1, 1, 1]
    assert active_warps(256, "interleaved") == [8, 8, 8, 8, 8, 4, 2, 1]


def test_shuffles_end_in_lane_0() -> None:
    """The alt text says the offsets and the sum."""
    alt = draw_shuffles(32).alt
    assert "offsets 16, 8, 4, 2, 1" in alt
    assert "lane 0 holds 32" in alt


@pytest.mark.parametrize("wrong", [0, 1, 12])
def test_what_is_no_power_of_two_makes_no_tree(wrong: int) -> None:
    """A message says so; nothing wrong is drawn."""
    for draw in (draw_reduction_tree, draw_shuffles):
        with pytest.raises(ValueError, match="power of two"):
            draw(wrong)
    with pytest.raises(ValueError, match="at most 32"):
        draw_reduction_tree(64)


@pytest.mark.parametrize("n", [1, 31, 256, 1003])
@pytest.mark.parametrize("name", RIGHT)
def test_every_rung_gives_the_mean(name: str, n: int) -> None:
    """On this machine, with a GPU or without, also where the last block is not full."""
    x = torch.randn(n)
    assert run_rung(name, x.to(ON), blocks=3) == pytest.approx(x.double().mean().item(), abs=1e-5)


@pytest.mark.skipif(ON == "cuda", reason="what a race gives on a GPU is a matter of luck")
def test_without_barriers_sums_are_lost() -> None:
    """The notebook shows what is missing then."""
    assert 0 < run_rung("tree without barriers", torch.ones(2048)) < 1


def test_rungs_are_compared_with_float64() -> None:
    """The table has every rung that is right, its error, and the truth."""
    found = compare_rungs(torch.full((4096,), 3.0, device=ON))
    assert list(found.means) == RIGHT
    assert found.exact == 3
    assert max(found.error(name) for name in RIGHT) < 1e-4
    for shown in (repr(found), found._repr_html_()):
        assert all(name in shown for name in (*RIGHT, "float64"))


def test_a_rung_is_shown_with_its_launch() -> None:
    """The kernel is at most a screen long, and each launch that it needs stands below."""
    for name in RUNGS:
        rung = show_rung(name)
        assert len(rung.kernel.strip().splitlines()) <= 30
        kernel = re.search(r"void (\w+)\(", rung.kernel)
        assert kernel
        assert all(line.startswith(f"{kernel[1]}<<<") for line in rung.launches)
        assert repr(rung).endswith(rung.launches[-1])
        assert "&lt;&lt;&lt;" in rung._repr_html_()
    with pytest.raises(KeyError, match="grid-stride"):
        show_rung("ladder")


@pytest.mark.skipif(ON == "cuda", reason="asks what is shown without a GPU")
def test_without_a_gpu_no_speed_is_made_up() -> None:
    """What is shown was recorded, or it is said that nothing is."""
    speeds = measure_rungs()
    assert speeds.how == "recorded"
    assert "ecorded" in repr(speeds)
    assert (speeds.ratio("tree", "atomics") is None) == (not {"tree", "atomics"} <= set(speeds.gbps))
    assert speeds.value("no such rung") is None


@pytest.mark.gpu
def test_on_a_gpu_the_rungs_are_timed() -> None:
    """Each rung has a bandwidth, and the last is faster than the first."""
    speeds = measure_rungs(1 << 22)
    assert speeds.how == "measured"
    assert set(speeds.gbps) == {*TIMED, "torch.mean"}
    assert (speeds.ratio("grid-stride", "atomics") or 0) > 1


def test_slow_rungs_are_told_with_digits_to_compute_a_ratio_from() -> None:
    """Two of them; a fast one has more as it is."""
    said = repr(RungSpeeds("measured", {"atomics": 2.276, "tree": 558.4, "grid-stride": 3694.2}))
    assert [line.split()[1] for line in said.splitlines()[1:]] == ["2.3", "558", "3,694"]
