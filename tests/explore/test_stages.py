"""Reductions in two stages: each element is drawn once, bytes are counted, and what was compiled is counted too."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grader.explore import Picture, count_instructions, draw_partial_traffic, draw_stages, partial_bytes

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))
"""


def test_a_program_goes_on_as_many_blocks_further_as_there_are_programs() -> None:
    """43 elements in blocks of 4 for 4 programs: what program 0 reads, and the lane that is masked."""
    alt = draw_stages(43, 4, 4).alt
    assert "11 blocks of 4, for 4 programs" in alt
    assert "Program 0 reads the blocks 0, 4, 8." in alt
    assert "The last lane of the last block is masked." in alt
    assert "adds these 4 and divides by 43" in alt
    assert "masked" not in draw_stages(32, 4, 4).alt
    assert "The last 3 lanes" in draw_stages(41, 4, 4).alt


@pytest.mark.parametrize("wrong", [(0, 4, 4), (43, 0, 4), (43, 4, 0), (43, 4, 9), (1000, 4, 4)])
def test_what_cannot_be_drawn_is_refused_with_a_sentence(wrong: tuple[int, int, int]) -> None:
    """A learner who tries other numbers learns which ones can be drawn."""
    with pytest.raises(ValueError, match=r"must be|choose"):
        draw_stages(*wrong)
    with pytest.raises(ValueError, match="at least 1"):
        draw_partial_traffic(0, {"none": 1})


def test_partial_sums_are_written_once_and_read_once() -> None:
    """65,536 float32: 256 KiB each way, and the picture's words say so."""
    assert partial_bytes(65_536) == 2 * 256 * 1024
    alt = draw_partial_traffic(2**26, {"many": 65_536, "few": 528}).alt
    assert "x, read once: 256 MiB" in alt
    assert "partial sums of 65,536 programs: many: 512 KiB" in alt
    assert "4.12 KiB" in alt


def test_pictures_are_the_same_each_time() -> None:
    """Drawing twice gives the same bytes, well-formed, and nothing from outside is asked for."""
    draws: tuple[Callable[[], Picture], ...] = (
        lambda: draw_stages(10, 4, 2),
        lambda: draw_partial_traffic(1024, {"one": 4}),
    )
    for draw in draws:
        first, second = draw(), draw()
        assert first.svg == second.svg
        ElementTree.fromstring(first.svg)
        assert not re.search(r'(?:href|src)="https?:', first.svg)


def test_a_sum_is_compiled_to_shuffles_and_a_barrier(tmp_path: Path) -> None:
    """Of 1,024 elements over 4 warps: 7 additions in a thread, then 5 shuffles in a warp and 2 between warps."""
    path = tmp_path / "sum_kernel.py"
    path.write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("sum_kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    found = count_instructions(module.sum_kernel, types, {"BLOCK": 1024}, ("add.f32", "shfl.sync", "bar.sync", "none"))
    assert (found["add.f32"], found["shfl.sync"], found["none"]) == (14, 7, 0)
    assert found["bar.sync"] >= 1
