"""The compiler explorer: stages, lines that know their Python, layouts, shared memory, and the page that shows them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.explore import (
    compile_kernel,
    draw_compiler_stages,
    draw_layout,
    draw_program,
    draw_shared_memory,
    explore_compiler,
    loaded_layouts,
)
from grader.explore.compiled import STAGES, Compiled
from grader.explore.layouts import Blocked
from grader.explore.shared_buffers import pipeline
from grader.worker.compile_only import CompileFailed

KERNELS = """
import triton
import triton.language as tl

SCALE = tl.constexpr(3)

@triton.jit
def tripled(x):
    return SCALE * x

@triton.jit
def triple_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tripled(x), mask=i < n)

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, K, stride, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    m, n = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * stride + start + k[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * stride + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * stride + n[None, :], total.to(tl.float16))
"""
X, H = torch.zeros(1024), torch.zeros(64, 64, dtype=torch.float16)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = Path(tmp_path_factory.mktemp("kernels"), "kernels_to_explore.py")
    path.write_text(KERNELS)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def triple(kernels: Any) -> Compiled:
    return compile_kernel(kernels.triple_kernel, X, X, 1024, BLOCK=1024)


@pytest.fixture(scope="module")
def matmul(kernels: Any) -> Compiled:
    return compile_kernel(kernels.matmul_kernel, H, H, H, 64, 64, M=64, N=64, BLOCK_K=32)


def test_every_stage_knows_the_line_of_the_load(triple: Compiled) -> None:
    """Line 4 of the kernel loads: it does in every stage, and the two wide loads are counted."""
    loads = {"ast": "attr='load'", "ttir": "tt.load", "ttgir": "tt.load"}
    loads |= {"llir": "ld.global", "ptx": "ld.global", "sass": "LDG"}
    for stage, instruction in loads.items():
        assert {line.python for line in triple.lines(stage) if instruction in line.text} == {4}, stage
    assert triple.loads == {16: 2}


def test_lines_of_other_functions_and_tables_for_debuggers_stay_away(triple: Compiled) -> None:
    """No line has a number that the kernel does not have, and no stage shows where its lines come from in its text."""
    last = len(triple.python.splitlines())
    for stage in STAGES:
        lines = triple.lines(stage)
        assert {line.python for line in lines} <= {None, *range(1, last + 1)}
        text = "\n".join(line.text for line in lines)
        assert not re.search(r"loc\(|!dbg|DILocation|\.loc\b|//##|\.debug_", text), stage
        assert len(lines) > 5


def test_what_it_needs_of_an_sm_is_read_from_the_machine_code(triple: Compiled, matmul: Compiled) -> None:
    """Registers are counted, nothing is spilled, and shared memory is what the tiles take."""
    assert triple.registers is not None
    assert 8 <= triple.registers <= 255
    assert (triple.stack_bytes, triple.shared_bytes) == (0, 0)
    assert matmul.shared_bytes == 3 * 2 * 64 * 32 * 2
    assert "2 × 16 bytes" in repr(triple)


def test_a_launch_that_does_not_compile_says_why(kernels: Any) -> None:
    """The compiler's own sentence, not a traceback."""
    with pytest.raises(CompileFailed, match=r"triple_kernel does not compile: .*power of 2"):
        compile_kernel(kernels.triple_kernel, X, X, 1024, BLOCK=1000)


def test_the_layout_says_who_holds_what(triple: Compiled, matmul: Compiled) -> None:
    """A run of four for each lane, 128 elements for each warp, and the same again behind 512."""
    (held,) = loaded_layouts(triple)
    assert (held.name, held.shape, held.each) == ("x", (1024,), 8)
    assert held.layout == Blocked((4,), (32,), (4,), (0,))
    found = [held.layout.holder((element,)) for element in (0, 3, 4, 127, 128, 511, 512, 517)]
    assert found == [(0, 0), (0, 0), (0, 1), (0, 31), (1, 0), (3, 31), (0, 0), (0, 1)]
    assert [each.shape for each in loaded_layouts(matmul)] == [(64, 32), (32, 64)]


def test_each_thread_holds_the_same_number_of_elements() -> None:
    """In two dimensions, walked along rows or along columns; lanes count up along the first of `order`."""
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
    """Three slots, two copies ahead on an H100; what comes after the loop takes the place of the first buffer."""
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
    """Numbers of the drawing stand in its alt text; what cannot be drawn is refused with a sentence."""
    assert "TritonGPU IR" in draw_compiler_stages().alt
    assert "lane 0 holds elements 0 to 3, lane 1 the next 4" in draw_program(triple).alt
    assert "Each box is 1 by 8 elements of one thread" in draw_layout(matmul).alt
    assert "a, 3 slots of 4096 bytes from offset 0; b, 3 slots" in draw_shared_memory(matmul).alt
    for draw, compiled in ((draw_program, matmul), (draw_layout, triple), (draw_shared_memory, triple)):
        with pytest.raises(ValueError, match=r"dimension|no loop"):
            draw(compiled)
    with pytest.raises(ValueError, match="there is no block 1"):
        draw_program(triple, 1)


def test_the_page_links_lines_by_class(kernels: Any) -> None:
    """Each line of Python has its partners in both stages, by a class; without any style there is the number."""
    view = explore_compiler(kernels.triple_kernel, X, X, 1024, BLOCK=1024)
    page = view.page()
    assert page.count('class="l4"') == 1 + sum(
        line.python == 4 for stage in view.stages for line in view.compiled().lines(stage)
    )
    assert ":has(.l4:hover) .l4" in page
    assert "<i>4</i>    x = tl.load(" in page
    assert repr(view).splitlines()[4].startswith("  4     x = tl.load(")
    assert not re.search(r"<script|javascript", page)


def test_the_gpu_and_the_stages_can_be_chosen(kernels: Any) -> None:
    """Another GPU compiles anew, and another stage is shown; a page has what is shown first."""
    view = explore_compiler(kernels.triple_kernel, X, X, 1024, BLOCK=1024)
    box = view.widget()
    (gpu, left, right), page = box.children[0].children, box.children[1]
    assert page.value == view.page()
    gpu.value, left.value, right.value = 75, "ttir", "sass"
    assert page.value == view.page(75, ("ttir", "sass"))
    assert "sm_75 (Turing, T4)" in page.value
    bundle = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/html"] == view.page()
