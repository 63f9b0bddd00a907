"""Without a GPU, kernels are also compiled for one: what its compiler refuses fails, although the simulator runs it."""

import re

import pytest

from grader.authoring.stubs import solution
from grader.exercises import find
from grader.feedback.report import as_text
from tests.judge.submissions import SOFTMAX, VECTOR_ADD, changed

pytestmark = pytest.mark.timeout(180)

AUTOTUNED = changed(
    VECTOR_ADD,
    "@triton.jit",
    "@triton.autotune([triton.Config({'BLOCK': block}) for block in (1024, 1 << 21)], key=['n'])\n@triton.jit",
)
MEAN = """
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    first = tl.load(x_ptr + at, mask=at < n, other=0.0)
    second = tl.load(x_ptr + at + BLOCK, mask=at + BLOCK < n, other=0.0)
    tl.store(out_ptr, tl.sum(first + second, axis=0) / n)


def mean_triton(x, out):
    half = triton.cdiv(x.numel(), 2)
    kernel[(1,)](x, out, x.numel(), BLOCK=triton.next_power_of_2(half))
"""


@pytest.mark.parametrize(
    ("exercise", "source", "line", "says"),
    [
        (
            "vector_add",
            changed(changed(VECTOR_ADD, "* BLOCK", "* SIZE"), "@triton.jit", "SIZE = 1024\n\n\n@triton.jit"),
            "* SIZE",
            "Cannot access global variable SIZE",
        ),
        (
            "vector_add",
            changed(
                changed(VECTOR_ADD, "mask = at < n", "mask = inside(at, n)"),
                "@triton.jit",
                "def inside(at, n):\n    return at < n\n\n\n@triton.jit",
            ),
            "mask = inside",
            "write `@triton.jit` above it",
        ),
        (
            "vector_add",
            changed(
                changed(VECTOR_ADD, "* BLOCK", "* SIZE"), "    n = out.numel()",
                "    device = triton.runtime.driver.active.get_active_torch_device()\n"
                "    assert x.device == device and out.is_cuda and y.get_device() == 0\n"
                "    assert x.to(device).device.index == 0 and y.cuda().device.type == 'cuda'\n    n = out.numel()",
            ).replace("@triton.jit", "SIZE = 1024\n\n\n@triton.jit"),
            "* SIZE",
            "Cannot access global variable SIZE",
        ),
        ("vector_add", changed(VECTOR_ADD, "mask = at < n", "mask = at < n\n    try:\n        pass\n    except E:\n"
                               "        pass"), "try:", "cannot compile Python's `Try`"),
        (
            "vector_add",
            changed(changed(AUTOTUNED, "BLOCK=1024", ""), "triton.cdiv(n, 1024)", "triton.cdiv(n, 1024)"),
            "tl.arange",
            "numel (2097152) exceeds triton maximum tensor numel (1048576)",
        ),
        ("mean_triton", MEAN, "at = tl.arange", "16,777,216 elements, each of them 1”, which a GPU runs)"),
        (
            "attention",
            changed(solution("attention"), "-3.4e38, dtype=tl.float32", "-3e4, dtype=tl.float16"),
            "for start in range",
            "row_max",
        ),
    ],
    ids=["global", "helper", "device checked", "statement", "configuration", "size", "called by a harness"],
)  # fmt: skip
def test_what_a_gpu_refuses_fails(judge, exercise, source, line, says):
    """All cases are right, no points are given, and the report has the compiler's words and the line."""
    verdict = judge.grade(source, exercise)
    assert (verdict.status, verdict.points) == ("failed", 0)
    assert all(case.passed for case in verdict.cases)
    assert verdict.failure.message.startswith("Runs in the simulator, but ")
    assert line in source.splitlines()[verdict.failure.line - 1]
    assert says in re.sub(r"\s+", " ", as_text(verdict, source))


def test_a_function_of_kernels_that_the_host_calls_fails(judge):
    """The first case fails as on a GPU, and the report names the host's function."""
    source = changed(VECTOR_ADD, "(triton.cdiv", "(tl.cdiv")
    verdict = judge.grade(source, "vector_add")
    assert (verdict.status, verdict.points) == ("failed", 0)
    report = re.sub(r"\s+", " ", as_text(verdict, source))
    assert "`tl.cdiv` works only inside a kernel" in report
    assert "Outside of one, write `triton.cdiv(…)`" in report


@pytest.mark.parametrize("source", [VECTOR_ADD, changed(VECTOR_ADD, "import triton\n", "import triton, torch\n")])
def test_what_compiles_passes(judge, source):
    """A kernel that a GPU takes gets its points, without a note."""
    verdict = judge.grade(source, "vector_add")
    assert (verdict.status, verdict.points) == ("passed", find("vector_add").correctness_points)
    assert verdict.environment.notes == ()


def test_data_that_is_not_there_is_no_failure(judge):
    """Kernels are compiled on tensors without data, so an error about data says nothing."""
    source = changed(SOFTMAX, "    rows, columns", "    if x.flatten()[0].item() != x.flatten()[0].item():\n"
                     "        raise ValueError\n    rows, columns")  # fmt: skip
    assert judge.grade(source, "softmax").status == "passed"


CUDA = """
import ctypes
from functools import cache
from torch.utils.cpp_extension import load_inline

source = r'''
__device__ float twice(float value) { return 2 * value; }

__global__ void square(const float* x, float* out, int width, int height, long x_row, long out_row) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < width && row < height)
        out[row * out_row + column] = twice(x[row * x_row + column]) * x[row * x_row + column] / 2;
}

extern "C" void launch(const float* x, float* out, int width, int height, long x_row, long out_row) {
    dim3 threads(16, 16), blocks((width + 15) / 16, (height + 15) / 16);
    square<<<blocks, threads>>>(x, out, width, height, x_row, out_row);
}
'''


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    return ctypes.CDLL(load_inline("square", cuda_sources=source, **options))


def square_matrix(x, out):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
    numbers = (ctypes.c_long(number) for number in (x.shape[1], x.shape[0], x.stride(0), out.stride(0)))
    library().launch(*pointers, *numbers)
"""


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        (changed(CUDA, "__device__ float", "float"), "twice(x[", "Mark the function `__device__`"),
    ],
    ids=["host"],
)
def test_cuda_that_a_gpu_refuses_fails(judge, source, line, says):
    """NVRTC compiles the device code of a source that the CPU's compiler takes."""
    verdict = judge.grade(source, "square_matrix")
    assert (verdict.status, verdict.points) == ("failed", 0)
    assert verdict.failure.message.startswith("Runs in the simulator, but does not compile for a GPU: ")
    assert not line or line in source.splitlines()[verdict.failure.line - 1]
    assert says in re.sub(r"\s+", " ", as_text(verdict, source))


def test_cuda_that_compiles_passes(judge):
    """Host code, which NVRTC cannot read, is left out."""
    verdict = judge.grade(CUDA, "square_matrix")
    assert (verdict.status, verdict.environment.uncompiled) == ("passed", "")


NUMBA = """
import math

from numba import cuda


@cuda.jit(device=True)
def turned(phase):
    return math.cos(phase), math.sin(phase)


@cuda.jit
def kernel(t, y, freqs, out):
    for i in range(cuda.grid(1), freqs.size, cuda.gridsize(1)):
        w = freqs[i]
        xc = xs = cc = ss = cs = 0.0
        for j in range(t.size):
            c, s = turned(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        c, s = turned(0.5 * math.atan2(2.0 * cs, cc - ss))
        both = 2.0 * c * s * cs
        out[i] = 0.5 * ((c * xc + s * xs) ** 2 / (c * c * cc + both + s * s * ss)
                        + (c * xs - s * xc) ** 2 / (c * c * ss - both + s * s * cc))


def ls_numba_baseline(t, y, freqs, out):
    kernel[20, 128](t, y, freqs, out)
"""


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        (changed(NUMBA, "@cuda.jit(device=True)\n", ""), "turned(w", "Untyped global name 'turned'"),
        (changed(NUMBA, "        w = freqs[i]", "        w = freqs[i]\n        names = [f'{i}']"), "f'{i}'", "No impl"),
    ],
    ids=["helper", "text"],
)
def test_numba_that_a_gpu_refuses_fails(judge, source, line, says):
    """The kernel is compiled for the types of its arguments."""
    verdict = judge.grade(source, "ls_numba_baseline")
    assert (verdict.status, verdict.points) == ("failed", 0)
    assert says in verdict.failure.message
    assert line in source.splitlines()[verdict.failure.line - 1]


def test_numba_that_compiles_passes(judge):
    """Device functions and the simulator's module are exchanged for the compiler's."""
    verdict = judge.grade(NUMBA, "ls_numba_baseline")
    assert (verdict.status, verdict.environment.uncompiled) == ("passed", "")
