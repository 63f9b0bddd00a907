"""Layouts and shared-memory buffers are read from a compiled kernel and drawn."""

from __future__ import annotations

from typing import Any

import pytest

from grader.explore import (
    draw_compiler_stages,
    draw_layout,
    draw_program,
    draw_shared_memory,
    loaded_layouts,
)
from grader.explore.triton_compiler.compiled_stages import Compiled
from grader.explore.triton_compiler.layout_drawings import Blocked, pipeline


def test_the_layout_says_who_holds_what(triple: Compiled, matmul: Compiled) -> None:
    """Each lane holds runs of four and each warp 128 elements; the layout repeats every 512."""
    (held,) = loaded_layouts(triple)
    assert (held.name, held.shape) == ("x", (1024,))
    assert held.layout == Blocked((4,), (32,), (4,), (0,))
    found = [held.layout.holder((element,)) for element in (0, 3, 4, 127, 128, 511, 512, 517)]
    assert found == [(0, 0), (0, 0), (0, 1), (0, 31), (1, 0), (3, 31), (0, 0), (0, 1)]
    assert [each.shape for each in loaded_layouts(matmul)] == [(64, 32), (32, 64)]


def test_each_thread_holds_the_same_number_of_elements() -> None:
    """In two dimensions, with row order and column order, lanes count up along the first dimension of `order`."""
    for order, second in (((1, 0), (0, 1)), ((0, 1), (0, 8))):
        layout = Blocked((1, 2), (8, 4), (2, 2), order)
        counts: dict[tuple[int, int], int] = {}
        for row in range(32):
            for column in range(16):
                holder = layout.holder((row, column))
                counts[holder] = counts.get(holder, 0) + 1
        assert set(counts.values()) == {4}
        assert len(counts) == 128
        assert layout.holder((0, 2)) == second


def test_the_pipeline_is_what_the_code_allocates(matmul: Compiled, kernels: Any) -> None:
    """On an H100 there are three slots and two copies in flight; after the loop the result reuses the first buffer."""
    plan = pipeline(matmul)
    assert [(each.name, each.offset, each.slot_bytes, each.slots) for each in plan.buffers] == [
        ("a", 0, 4096, 3),
        ("b", 12288, 4096, 3),
    ]
    assert (plan.ahead, [(each.offset, each.slot_bytes) for each in plan.after]) == (2, [(0, 8192)])
    states = [[plan.state(slot, step, 6) for slot in range(3)] for step in range(-2, 6)]
    assert states[0] == ["arriving", "free", "free"]
    assert states[2] == ["read", "arriving", "arriving"]
    assert states[7] == ["free", "free", "read"]
    assert all(row.count("read") == 1 for row in states[2:])


def test_pictures_say_what_they_show(triple: Compiled, matmul: Compiled, kernels: Any) -> None:
    """The alt text has the numbers of the drawing; a kernel that cannot be drawn is refused with a message."""
    assert "TritonGPU IR" in draw_compiler_stages().alt
    assert "lane 0 holds elements 0 to 3, lane 1 the next 4" in draw_program(triple).alt
    assert "Each box is 1 by 8 = 8 elements of one thread" in draw_layout(matmul).alt
    assert "a, 3 slots of 4096 bytes from offset 0; b, 3 slots" in draw_shared_memory(matmul).alt
    for draw, compiled in ((draw_program, matmul), (draw_layout, triple), (draw_shared_memory, triple)):
        with pytest.raises(ValueError, match=r"dimension|no loop"):
            draw(compiled)
    with pytest.raises(ValueError, match="there is no block 1"):
        draw_program(triple, 1)
