"""Learners' cells on a machine without a GPU. Each runs in a separate process, as in a worker."""

# ruff: noqa: E501

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

KERNEL = """
__global__ void square_kernel(const float* x, float* out, int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < height && column < width) out[row * width + column] = x[row * width + column] * x[row * width + column];
}
"""

LAUNCHER = """
constexpr int side_limit = SIDE_LIMIT;  // from the flags: those for nvcc alone are dropped
constexpr T of_the_flags = 0;  // a macro with a name that headers use, too
extern "C" const char* square(const float* x, float* out, int height, int width, int side) {
    dim3 block(side, side);
    dim3 grid((width + side - 1) / side, (height + side - 1) / side);
    square_kernel<<<grid, block>>>(x, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""

CTYPES = f'''
import ctypes
from torch.utils.cpp_extension import load_inline

cuda_source = r"""{KERNEL}{LAUNCHER}"""
library = ctypes.CDLL(load_inline("square", cpp_sources="", cuda_sources=cuda_source, extra_cuda_cflags=["-O3", "--use_fast_math", "-DSIDE_LIMIT=32", "-DT='float'"],
                                  no_implicit_headers=True, is_python_module=False))
library.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int]
library.square.restype = ctypes.c_char_p

def square_matrix(x, out, side=16):
    if error := library.square(x.data_ptr(), out.data_ptr(), *x.shape, side):
        raise RuntimeError(error.decode())
'''

OPERATOR = f'''
import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""{KERNEL}
void launch_square(const float* x, float* out, int height, int width) {{
    square_kernel<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(x, out, height, width);
}}
"""
cpp_source = r"""
#include <ATen/core/Tensor.h>
#include <torch/library.h>
void launch_square(const float* x, float* out, int height, int width);
void square(const at::Tensor& x, const at::Tensor& out) {{
    TORCH_CHECK(x.is_cuda() && out.is_cuda(), "x and out must be on the GPU");
    launch_square(x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(0), x.size(1));
}}
TORCH_LIBRARY(square_test, m) {{ m.def("square(Tensor x, Tensor(a!) out) -> ()"); }}
TORCH_LIBRARY_IMPL(square_test, CUDA, m) {{ m.impl("square", &square); }}
"""
load_inline("square", cpp_sources=cpp_source, cuda_sources=[cuda_source], no_implicit_headers=True, is_python_module=False)
square_matrix = torch.ops.square_test.square
'''

STABLE = (
    OPERATOR[: OPERATOR.index("cpp_source = ")]
    + '''
cpp_source = r"""
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
void launch_square(const float* x, float* out, int height, int width);
void square(torch::stable::Tensor x, torch::stable::Tensor out) {
    launch_square(x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(0), x.size(1));
}
STABLE_TORCH_LIBRARY(square_test, m) { m.def("square(Tensor x, Tensor(a!) out) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(square_test, CUDA, m) { m.impl("square", TORCH_BOX(&square)); }
"""
load_inline("square", cpp_sources=cpp_source, cuda_sources=[cuda_source], no_implicit_headers=True, is_python_module=False)
square_matrix = torch.ops.square_test.square
'''
)

PYBIND = f'''
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
{KERNEL}
void square(torch::Tensor x, torch::Tensor out, int64_t side) {{
    CHECK_CUDA(x);
    const at::cuda::OptionalCUDAGuard guard(x.device());
    const int height = x.size(0), width = x.size(1);
    dim3 block(side, side), grid((width + side - 1) / side, (height + side - 1) / side);
    square_kernel<<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), out.data_ptr<float>(), height, width);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}}
"""
module = load_inline("square", "void square(torch::Tensor x, torch::Tensor out, int64_t side);", cuda_source, functions=["square"])

def square_matrix(x, out, side=16):
    module.square(x, out, side)
'''

START = """
import sys
from grader.worker.simulator import start
start.prepare()
import torch
start.install()
start.install()
"""

CHECK = """
from submission import square_matrix
for shape in (1, 1), (37, 53), (300, 1):
    x, out = torch.randn(shape), torch.full(shape, float("nan"))
    square_matrix(x, out)
    start.synchronize()
    assert torch.equal(out, x * x), shape
"""

REFUSED = """
try:
    square_matrix(x, out, 33)
except RuntimeError as error:
    assert "invalid configuration argument" in str(error), error
else:
    raise SystemExit("a block of 33 × 33 threads was launched")
torch.cuda.synchronize()
"""


def run(
    folder: Path, cell: str, script: str, command: Sequence[str] = (sys.executable, "script.py")
) -> subprocess.CompletedProcess[str]:
    """Run `script` after the simulator's start, with `cell` as the module `submission`."""
    (folder / "submission.py").write_text(cell, encoding="utf-8")
    (folder / "script.py").write_text(START + script, encoding="utf-8")
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "TORCH_EXTENSIONS"))
    }
    root = str(Path(__file__).parents[3])
    environment = inherited | {"PYTHONPATH": root, "TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500)


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    ("cell", "extra"),
    [(CTYPES, REFUSED), (OPERATOR, ""), (STABLE, ""), (PYBIND, REFUSED)],
    ids=["ctypes", "operator", "stable_abi", "pybind"],
)
def test_a_cell_written_for_the_gpu_runs_unchanged(tmp_path: Path, cell: str, extra: str) -> None:
    """With every binding the device checks pass, the result is right, and a launch that CUDA refuses raises."""
    good(run(tmp_path, cell, CHECK + extra))


def test_an_edited_cell_can_be_run_again(tmp_path: Path) -> None:
    """The second build in one process is called, as in a notebook."""
    edited = CTYPES.replace("cuda_source = ", "side_effect = 1\ncuda_source = ").replace("= x[row", "= 1 + x[row")
    script = (
        CHECK
        + f"namespace = {{}}\nexec({edited!r}, namespace)\nnamespace['square_matrix'](x, out)\nassert torch.equal(out, x * x + 1)\n"
    )
    good(run(tmp_path, CTYPES, script + "square_matrix(x, out)\nassert torch.equal(out, x * x)\n"))


def test_a_machine_without_a_compiler_says_so(tmp_path: Path) -> None:
    """At the learner's call, before torch complains of a compiler with another name; ninja is found in the folder of Python."""
    script = (
        "import os, shutil\nos.environ['PATH'] = '/nowhere'\nos.environ.pop('CXX', None)\n"
        "try:\n    import submission\nexcept RuntimeError as error:\n    print(error, '|', bool(shutil.which('ninja')), end='')\n"
    )
    assert good(run(tmp_path, CTYPES, script)) == (
        "g++: not found. Without a GPU, CUDA C++ is built by GCC, and this machine has none. "
        "`grader doctor` shows the command that installs it. | True"
    )


def test_a_compiler_error_names_the_line_of_the_cell(tmp_path: Path) -> None:
    """It is not a line of a generated file or of the grader."""
    cell = CTYPES.replace("blockIdx.y * blockDim.y", "blockIdx.y * blockDimension")
    line = next(n for n, text in enumerate(cell.splitlines(), 1) if "blockDimension" in text)
    script = (
        "from grader.worker.toolchain.compiler_errors import first_error\n"
        "try:\n    import submission\nexcept RuntimeError as error:\n    print(first_error(str(error)))\n"
    )
    assert good(run(tmp_path, cell, script)).startswith(f"({line}, \"'blockDimension' was not declared in this scope")


def test_a_failed_kernel_raises_at_the_next_synchronisation(tmp_path: Path) -> None:
    """As on a GPU, the failure is not lost if the launcher ignores errors."""
    cell = CTYPES.replace(
        "{\n    int column", "{\n    if (threadIdx.x == 0) return;\n    __syncthreads();\n    int column"
    )
    cell = cell.replace("cudaError_t error = cudaGetLastError();", "cudaError_t error = cudaSuccess;")
    line = next(n for n, text in enumerate(cell.splitlines(), 1) if "__syncthreads" in text)
    script = """
from submission import square_matrix
x, out = torch.ones(4, 4), torch.zeros(4, 4)
square_matrix(x, out)
try:
    start.synchronize()
except RuntimeError as error:
    print(error)
"""
    text = good(run(tmp_path, cell, script))
    assert f"240 of 256 threads wait at __syncthreads() on line {line}" in text


def test_triton_kernels_take_cpu_tensors(tmp_path: Path) -> None:
    """`prepare()` is all that a Triton cell needs."""
    cell = """
import triton
import triton.language as tl

@triton.jit
def add_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

def add_one(x, out):
    add_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
"""
    script = "from submission import add_one\nx, out = torch.randn(100), torch.zeros(100)\nadd_one(x, out)\nassert torch.equal(out, x + 1)\n"
    good(run(tmp_path, cell, script))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_a_masked_element_is_undefined(tmp_path: Path, dtype: str) -> None:
    """As on a GPU, it is undefined without `other`; integers stay 0."""
    cell = """
import triton
import triton.language as tl

@triton.jit
def sums(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + at, mask=at < n), axis=0))
    tl.store(out + 1, tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0))

@triton.jit
def counts(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + at, mask=at < n), axis=0))
"""
    script = f"""
from submission import sums, counts
x, out = torch.ones(5, dtype=torch.{dtype}), torch.zeros(2, dtype=torch.{dtype})
sums[(1,)](x, out, 5, BLOCK=8)
assert out[0].isnan() and out[1] == 5, out
sums[(1,)](x, out, 5, BLOCK=4)
assert out[0] == 4, "no lane is masked"
sums[(1,)](x, out, 0, BLOCK=1)
assert out[0].isnan() and out[1] == 0, "one lane"
x, out = torch.ones(5, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
counts[(1,)](x, out, 5, BLOCK=8)
assert out == 5
"""
    good(run(tmp_path, cell, script))


def test_preparing_too_late_raises() -> None:
    """Triton chooses its interpreter at import, and the message says what to do."""
    script = "import triton.language\nfrom grader.worker.simulator import start\n"
    script += "try:\n    start.prepare()\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert good(done).startswith("GraderError triton was imported before its interpreter was chosen")


def test_without_a_limit_on_the_stack_a_tensor_is_no_variable_of_the_host(tmp_path: Path) -> None:
    """The C library then counts all memory below the stack as its own, and tensors are in it."""
    command = ["bash", "-c", 'ulimit -s unlimited && exec "$@"', "bash", sys.executable, "script.py"]
    good(run(tmp_path, CTYPES, CHECK, command))
