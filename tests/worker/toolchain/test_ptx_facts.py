"""Facts about compiled kernels, read from their PTX."""

from grader.worker.toolchain.ptx_facts import facts

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
    assert facts(_PTX) == [
        {"name": "first", "float64": 3, "double": False, "fast_sines": 1, "bound": True},
        {"name": "second", "float64": 1, "double": True, "fast_sines": 0, "bound": False},
    ]
