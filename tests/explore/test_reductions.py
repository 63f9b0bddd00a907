"""Reductions: drawn trees add up, and the rungs compute means."""

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
from grader.words import plural

ON = "cuda" if torch.cuda.is_available() else "cpu"
RIGHT = [name for name in RUNGS if name != "tree without barriers"]


@pytest.mark.parametrize("addressing", ["sequential", "interleaved"])
@pytest.mark.parametrize("threads", [2, 16, 32])
def test_a_drawn_tree_ends_with_the_sum_of_all(threads: int, addressing: str) -> None:
    """Element 0 ends with the sum, after as many steps as the number of threads can be halved."""
    picture = draw_reduction_tree(threads, addressing)
    assert picture.alt.endswith(f"element 0 holds {threads}.")
    assert f"in {plural(threads.bit_length() - 1, 'step')}, " in picture.alt


def test_neighbours_first_keeps_every_warp_busy() -> None:
    """Sequential addressing frees warps early; interleaved addressing frees none until each has one active thread."""
    assert active_warps(256, "sequential") == [4, 2, 1, 1, 1, 1, 1, 1]
    assert active_warps(256, "interleaved") == [8, 8, 8, 8, 8, 4, 2, 1]


def test_shuffles_end_in_lane_0() -> None:
    """The alt text has the offsets and the sum."""
    alt = draw_shuffles(32).alt
    assert "offsets 16, 8, 4, 2, 1" in alt
    assert "lane 0 holds 32" in alt


@pytest.mark.parametrize("wrong", [0, 1, 12])
def test_what_is_no_power_of_two_makes_no_tree(wrong: int) -> None:
    """A message says so, and nothing is drawn."""
    for draw in (draw_reduction_tree, draw_shuffles):
        with pytest.raises(ValueError, match="power of two"):
            draw(wrong)
    with pytest.raises(ValueError, match="at most 32"):
        draw_reduction_tree(64)


@pytest.mark.parametrize("n", [1, 31, 256, 1003])
@pytest.mark.parametrize("name", RIGHT)
def test_every_rung_gives_the_mean(name: str, n: int) -> None:
    """It does on this machine's GPU or CPU, even if the last block is not full."""
    x = torch.randn(n)
    assert run_rung(name, x.to(ON), blocks=3) == pytest.approx(x.double().mean().item(), abs=1e-5)


@pytest.mark.skipif(ON == "cuda", reason="the result of a race on a GPU is random")
def test_without_barriers_sums_are_lost() -> None:
    """The notebook shows the missing part."""
    assert 0 < run_rung("tree without barriers", torch.ones(2048)) < 1


def test_rungs_are_compared_with_float64() -> None:
    """The table has every correct rung, its error, and the float64 mean."""
    found = compare_rungs(torch.full((4096,), 3.0, device=ON))
    assert list(found.means) == RIGHT
    assert found.exact == 3
    assert max(found.error(name) for name in RIGHT) < 1e-4
    for shown in (repr(found), found._repr_html_()):
        assert all(name in shown for name in (*RIGHT, "float64"))


def test_a_rung_is_shown_with_its_launch() -> None:
    """The kernel is at most a screen long, and its launches are shown below it."""
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


@pytest.mark.skipif(ON == "cuda", reason="tests a machine without a GPU")
def test_without_a_gpu_no_speed_is_made_up() -> None:
    """Speeds are recorded ones, or a note says that none are recorded."""
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
    """A slow rung has two digits; a fast one is a whole number."""
    said = repr(RungSpeeds("measured", {"atomics": 2.276, "tree": 558.4, "grid-stride": 3694.2}))
    assert [line.split()[1] for line in said.splitlines()[1:]] == ["2.3", "558", "3,694"]
