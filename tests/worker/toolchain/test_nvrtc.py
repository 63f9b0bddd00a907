"""CUDA C++ is compiled without a GPU, and facts are read from the PTX."""

import subprocess
import sys

import pytest

from grader.worker.toolchain.nvrtc import compiled, ptx_facts

_PTX = """
.visible .entry first(
    .param .u64 x
)
.maxntid 128, 1, 1
{
    mul.f64 %fd1, %fd2, %fd3;
    @%p1 add.rn.f64 %fd1, %fd2, %fd3;
    cvt.rn.f32.f64 %f1, %fd1;
    sin.approx.ftz.f32 %f1, %f2;
    ret;
}
.visible .entry second(
    .param .u64 x
)
{
    add.f32 %f1, %f2, %f3;
    st.global.v2.f64 [%rd1], {%fd1, %fd2};
    ret;
}
"""


def test_each_kernel_has_its_own_facts():
    """Instructions are counted for each kernel; only the second has results that are doubles."""
    assert ptx_facts(_PTX) == [
        {
            "name": "first",
            "float64": 3,
            "double": False,
            "reductions": 0,
            "fast_sines": 1,
            "bound": True,
            "per_sine": 0,
        },
        {
            "name": "second",
            "float64": 1,
            "double": True,
            "reductions": 0,
            "fast_sines": 0,
            "bound": False,
            "per_sine": 0,
        },
    ]


_LOOPS = """
.visible .entry nested()
{
    mov.u32 %r1, 0;
$L__BB0_1:
    mov.u32 %r2, 0;
$L__BB0_2:
    sin.approx.ftz.f32 %f1, %f2;
    sin.approx.ftz.f32 %f3, %f4;
    add.f32 %f5, %f1, %f3;
    add.s32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, %r3;
    @%p1 bra $L__BB0_2;
    sin.approx.ftz.f32 %f1, %f2;
    @%p2 bra $L__BB0_1;
$L__BB0_3:
    sin.approx.ftz.f32 %f1, %f2;
    sin.approx.ftz.f32 %f1, %f2;
    sin.approx.ftz.f32 %f1, %f2;
    @%p4 st.global.f32 [%rd1], %f1;
    @%p3 bra $L__BB0_3;
    ret;
}
"""


def test_the_innermost_loop_is_counted_per_fast_sine():
    """Six instructions with two sines are three per sine.

    The outer loop's own sine does not count, and neither do the three of its copy for inputs without samples.
    """
    assert ptx_facts(_LOOPS)[0]["per_sine"] == 3


@pytest.mark.parametrize(
    ("body", "error"), [("*x = 1;", ""), ("*x = y;", 'some.cu(1): error: identifier "y" is undefined')]
)
def test_a_source_compiles_or_there_is_an_error(body, error):
    """With PTX and machine code, or with neither."""
    pytest.importorskip("cuda.bindings.nvrtc")
    source = f'extern "C" __global__ void kernel(int* x) {{ {body} }}'
    answer = compiled(source.encode(), "some.cu", ["--gpu-architecture=sm_90"])
    assert answer.error.startswith(error)
    assert bool(answer.error) == bool(error)
    assert (".entry kernel" in answer.ptx, answer.cubin.startswith(b"\x7fELF")) == (not error, not error)


def test_an_empty_log_is_written_into_no_shared_object(tmp_path):
    """Python has one object for `b" "`, a module compiled just now uses it, and an empty log is one zero."""
    code = (
        "from grader.worker.toolchain.nvrtc import compiled\n"
        "compiled(b'__global__ void kern() {}', 'kern.cu', ['-arch=sm_90'])\n"
        "print(bytes([32]))"
    )
    command = [sys.executable, "-X", f"pycache_prefix={tmp_path}", "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "b' '\n"
