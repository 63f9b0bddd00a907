"""Load widths and layouts are read from PTX and from TritonGPU IR."""

from __future__ import annotations

import pytest

from grader.worker.harnesses.triton_kernels import (
    asynchronous_bytes,
    contiguous_elements,
    elements_per_thread,
    has_bulk_copies,
    load_widths,
)

TTGIR = """
#blocked = #ttg.blocked<{sizePerThread = [SIZE], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
    %gain_5 = tt.load %gain : !tt.ptr<f32> loc(#loc34)
    %x_8 = tt.load %x_7, %mask_4 : tensor<1024x!tt.ptr<f32>, #blocked> loc(#loc37)
"""


@pytest.mark.parametrize(
    ("line", "width"),
    [
        ("ld.global.b32 { %r1 }, [ %rd1 + 0 ];", 4),
        ("@%p1 ld.global.v4.b32 { %r2, %r3, %r4, %r5 }, [ %rd2 + 0 ];", 16),
        ("@!%p1 ld.global.nc.L1::no_allocate.L2::128B.v2.f64 {%fd1, %fd2}, [%rd4];", 16),
        ("ld.volatile.global.u8 %rs1, [%rd1+3];", 1),
        ("ld.relaxed.gpu.global.b16 %rs1, [%rd1];", 2),
        ("ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", 32),
        ("{ .reg .b64 a; ld.global.b128 %rq1, [%rd1]; }", 16),
    ],
)
def test_a_load_moves_so_many_bytes(line: str, width: int) -> None:
    """Vectors, predicates and qualifiers are read as Triton and nvcc write them."""
    assert load_widths(line) == {width: 1}


@pytest.mark.parametrize(
    "line",
    [
        "// ld.global.v4.b32 { %r1 }, [ %rd1 ];",
        "/* ld.global.b32 %r1, [%rd1]; */",
        "st.global.v4.b32 [ %rd1 + 0 ], { %r1, %r2, %r3, %r4 };",
        "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5];",
        "ld.param.b64 %rd1, [kernel_param_0];",
        "cvta.to.global.u64 %rd2, %rd1;",
        "cp.async.cg.shared.global [ %r15 + 0 ], [ %rd8 + 0 ], 0x10, %r16;",
    ],
)
def test_other_instructions_are_not_counted(line: str) -> None:
    """These are comments, stores, other memories and asynchronous copies."""
    assert load_widths(line) == {}


def test_asynchronous_copies_have_widths_too() -> None:
    """Triton writes the size in hexadecimal, nvcc in decimal; the TMA copies whole tiles."""
    ptx = "cp.async.cg.shared.global [ %r1 + 0 ], [ %rd8 + 0 ], 0x10, %r16;\ncp.async.ca.shared.global [%r1], [%rd], 4;"
    assert asynchronous_bytes(ptx) == {16: 1, 4: 1}
    assert not has_bulk_copies(ptx)
    assert has_bulk_copies("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1];")


def test_elements_per_thread_follow_from_the_layout() -> None:
    """1,024 elements over 4 warps are 8 per thread; a scalar is not a block."""
    assert elements_per_thread(TTGIR) == 8
    assert contiguous_elements(TTGIR.replace("SIZE", "4")) == 4
    assert contiguous_elements(TTGIR.replace("SIZE", "1")) == 1
    assert (elements_per_thread(""), contiguous_elements("")) == (1, 1)
