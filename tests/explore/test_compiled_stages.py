"""A kernel is compiled without a GPU, and its stages and instructions are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.explore import (
    compile_kernel,
    count_instructions,
    explore_compiler,
    memory_instructions,
)
from grader.explore.hopper.language_views import load_file
from grader.explore.triton_compiler.compiled_stages import STAGES, Compiled
from grader.worker.toolchain.compile_only import CompileFailed

X = torch.zeros(1024)


def test_every_stage_knows_the_line_of_the_load(triple: Compiled) -> None:
    """Every stage links its load to line 4 of the kernel, and the two wide loads are counted."""
    loads = {"ast": "attr='load'", "ttir": "tt.load", "ttgir": "tt.load"}
    loads |= {"llir": "ld.global", "ptx": "ld.global", "sass": "LDG"}
    for stage, instruction in loads.items():
        assert {line.python for line in triple.lines(stage) if instruction in line.text} == {4}, stage
    assert triple.loads == {16: 2}


def test_lines_of_other_functions_and_tables_for_debuggers_stay_away(triple: Compiled) -> None:
    """Line numbers are those of the kernel, and the text of a stage has no debug information."""
    last = len(triple.python.splitlines())
    for stage in STAGES:
        lines = triple.lines(stage)
        assert {line.python for line in lines} <= {None, *range(1, last + 1)}
        text = "\n".join(line.text for line in lines)
        assert not re.search(r"loc\(|!dbg|DILocation|\.loc\b|//##|\.debug_", text), stage
        assert len(lines) > 5


def test_what_it_needs_of_an_sm_is_read_from_the_machine_code(triple: Compiled, matmul: Compiled) -> None:
    """Registers are counted, nothing is spilled, and shared memory is the size of the tiles."""
    assert 8 <= triple.registers <= 255
    assert (triple.stack_bytes, triple.shared_bytes) == (0, 0)
    assert matmul.shared_bytes == 3 * 2 * 64 * 32 * 2
    assert "2 × 16 bytes" in repr(triple)


def test_a_launch_that_does_not_compile_says_why(kernels: Any) -> None:
    """The message is the compiler's own, not a traceback."""
    with pytest.raises(CompileFailed, match=r"triple_kernel does not compile: .*power of 2"):
        compile_kernel(kernels.triple_kernel, X, X, 1024, BLOCK=1000)


def test_the_page_links_lines_by_class(kernels: Any) -> None:
    """A class links each line of Python to its lines in both stages; without styles, the line number does."""
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
    """Choosing a GPU recompiles, choosing a stage shows it, and an exported page has the first choices."""
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


COPY = """
import triton
import triton.language as tl

@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

@triton.jit
def broken_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.no_such_thing(x_ptr))
"""


@pytest.fixture
def copies(tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "copies.py"
    path.write_text(COPY)
    return load_file(path)


TYPES = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}


def test_loads_are_16_bytes_wide_only_where_the_compiler_may_assume_it(copies) -> None:  # type: ignore[no-untyped-def]
    """The width of a load depends on what the compiler knows about pointers and sizes; no GPU is needed."""
    wide = memory_instructions(copies.copy_kernel, TYPES, {"BLOCK": 1024}, ("x_ptr", "out_ptr", "n"))
    narrow = memory_instructions(copies.copy_kernel, TYPES, {"BLOCK": 1024}, ("x_ptr", "out_ptr"))
    assert wide == {"load of 16 bytes": 2, "store of 16 bytes": 2}
    assert narrow == {"load of 4 bytes": 8, "store of 4 bytes": 8}


def test_a_kernel_that_does_not_compile_says_why(copies) -> None:  # type: ignore[no-untyped-def]
    """The learner gets the compiler's last line, without a traceback."""
    with pytest.raises(RuntimeError, match=r"broken_kernel does not compile: .*no_such_thing") as caught:
        memory_instructions(copies.broken_kernel, TYPES, {"BLOCK": 16})
    assert "\n" not in str(caught.value)


SUM = """
import triton
import triton.language as tl

@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))
"""


def test_a_sum_is_compiled_to_shuffles_and_a_barrier(tmp_path: Path) -> None:
    """1,024 elements over 4 warps need 7 additions per thread, then 5 shuffles in a warp and 2 between warps."""
    path = tmp_path / "sum_kernel.py"
    path.write_text(SUM)
    module = load_file(path)
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    found = count_instructions(module.sum_kernel, types, {"BLOCK": 1024}, ("add.f32", "shfl.sync", "bar.sync", "none"))
    assert (found["add.f32"], found["shfl.sync"], found["none"]) == (14, 7, 0)
    assert found["bar.sync"] >= 1
