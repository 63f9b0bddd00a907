"""Facts from PTX: instructions, widths, and what the assembler reports."""

from __future__ import annotations

import pytest

from grader.worker.toolchain.machine_facts import kernel_facts

_PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 a)
{
    .reg .b64 %rd<3>; .reg .f32 %f<9>; .reg .f64 %d<3>; .reg .b32 %r<4>;
    ld.param.u64 %rd1, [a];
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
    ld.global.b32 %r1, [%rd1];
    ld.shared.f32 %f5, [%r1];
    cvt.f64.f32 %d1, %f1;
    add.rn.f64 %d2, %d1, %d1;
    sin.approx.ftz.f32 %f6, %f2;
    st.global.v2.f32 [%rd1], {%f6, %f3};
    red.relaxed.gpu.global.add.f32 [%rd1], %f4;
    ret;
}
.visible .entry product()
{
    // begin inline asm
    {
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;
}
    // end inline asm
    st.global.b32 [%rd1], %r1;
    ret;
}
"""
_LOG = """ptxas info    : Compiling entry function 'copy' for 'sm_90'
ptxas info    : Function properties for copy
    24 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 42 registers, 360 bytes cmem[0]
"""


def test_instructions_are_counted_by_kernel() -> None:
    """Loads from shared memory and conversions do not count, and each kernel has its own."""
    copy, product = kernel_facts(_PTX, _LOG)
    assert copy == {
        "kernel": "copy", "float64": 1, "tensor_cores": 0, "atomics": 1, "async_copies": 0, "fast_sines": 1,
        "load_16": 1, "load_4": 1, "store_8": 1, "registers": 42, "spilled": 16, "double": False, "indexed": 0,
        "cycles": 17, "double_cycles": 8, "access_cycles": 252,
    }  # fmt: skip
    assert (product["tensor_cores"], product["store_4"], "registers" in product) == (1, 1, False)


def test_without_a_log_the_assembler_is_asked() -> None:
    """Triton brings it along; a kernel that does not assemble has no registers."""
    pytest.importorskip("triton")
    (entry,) = kernel_facts(_PTX.partition(".visible .entry product")[0].replace("ld.shared.f32 %f5, [%r1];", ""))
    assert 0 < entry["registers"] < 64
    assert "registers" not in kernel_facts(_PTX.replace("add.rn.f64", "add.rn.f63"))[0]
