"""Device code, taken out of a CUDA C++ source and compiled by NVRTC."""

import pytest

from grader.worker.simulator import cuda_compiled
from grader.worker.simulator.cuda_compiled import Unsure, device_code, refusal

_KERNEL = "__global__ void kernel(int* x) {\n    *x = twice(2);\n}\n"


def test_host_code_is_left_out_and_lines_stay():
    """Headers and functions of the host become blanks; kernels, structs and constants stay on their lines."""
    source = (
        "#include <vector>\nconstexpr int N = 2;\nint host(std::vector<int> v) {\n    return v[0];\n}\n"
        "__global__ void kernel(int* x) { *x = N; }\nvoid launch(int* x) { kernel<<<1, 1>>>(x); }\n"
    )
    code, calls = device_code(source)
    assert [line.strip() for line in code.split("\n")] == [
        "", "constexpr int N = 2;", "", "", "", "__global__ void kernel(int* x) { *x = N; }", "", ""
    ]  # fmt: skip
    assert calls == []


def test_a_call_of_a_host_function_is_named():
    """A function without `__device__` cannot be called from a kernel, wherever it is defined."""
    said = 'calling a __host__ function("twice") from a __global__ function("kernel") is not allowed'
    assert refusal("int twice(int x) { return 2 * x; }\n" + _KERNEL, "") == f"cuda_source(3): error: {said}"
    assert refusal("__device__ int twice(int x) { return 2 * x; }\n" + _KERNEL, "") == ""


@pytest.mark.parametrize(
    "log",
    [
        "cub/block.cuh(61): error: A function explicitly marked as a __host__ function is not allowed in JIT mode",
        "cooperative_groups.h(9): error: something in a header",
        'cell(3): error: identifier "uint4x" is undefined',
    ],
)
def test_errors_that_may_be_nvrtcs_own_say_nothing(monkeypatch, log):
    """NVRTC has fewer headers than nvcc: an error in one of them, or a missing one, must not fail the work."""
    monkeypatch.setattr(cuda_compiled, "_log", lambda code: log)
    with pytest.raises(Unsure):
        refusal("__global__ void kernel(int* x) { *x = 1; }", "")
