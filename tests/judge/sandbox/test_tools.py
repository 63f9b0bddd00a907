"""The course's compilers and libraries work in the sandbox."""

import pytest

TOOLS = """
import os, subprocess, sys
os.environ["TRITON_INTERPRET"] = os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
sys.path.insert(0, os.getcwd())
import numpy, torch
from numba import cuda

open("kernel.py", "w").write('''
import triton, triton.language as tl
@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, at < n), at < n)
''')
from kernel import double
x = torch.arange(5.0)
out = torch.empty(5)
double[(1,)](x, out, 5, BLOCK=8)
print("triton", out.tolist() == [0, 2, 4, 6, 8])

@cuda.jit
def four(x):
    at = cuda.grid(1)
    if at < x.size:
        x[at] *= 4
y = numpy.arange(5.0)
four[1, 8](y)
print("numba", y.tolist() == [0, 4, 8, 12, 16])

open("main.cpp", "w").write("#include <vector>\\nint main() { return (int)std::vector<int>(3).size(); }")
subprocess.run([os.environ.get("CXX", "c++"), "main.cpp", "-o", "main"], check=True)
print("compiler", subprocess.run(["./main"]).returncode == 3)
"""
BUILD = """
from torch.utils.cpp_extension import load_inline
source = '''
#include <pybind11/pybind11.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("triple", [](int x) { return 3 * x; }); }
'''
print("load_inline", load_inline("built", source, no_implicit_headers=True).triple(4) == 12)
"""
DONE = 'print("tools done")\n'

GPU_NODES = """
import os
def opened(path):
    try:
        return not os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
nodes = sum(opened(f"/dev/nvidia{number}") for number in range(64))
"""
GPU_TOOLS = """
import torch, triton, triton.language as tl
from torch.utils.cpp_extension import load_inline
print("gpus", torch.cuda.device_count(), nodes)
print("torch", float(torch.ones(8, device="cuda").sum()) == 8)
print("compile", torch.compile(lambda x: x * 2 + 1)(torch.ones(8, device="cuda")).tolist() == [3.0] * 8)
open("kernel.py", "w").write('''
import triton, triton.language as tl
@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, 2 * tl.load(x + at, at < n), at < n)
''')
import sys
sys.path.insert(0, os.getcwd())
from kernel import double
x = torch.ones(5, device="cuda")
double[(1,)](x, 5, BLOCK=8)
print("triton", x.tolist() == [2] * 5)
source = '''
__global__ void triple(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 3; }
void run(torch::Tensor x) { triple<<<1, 32>>>(x.data_ptr<float>(), x.numel()); }
'''
load_inline("built", "void run(torch::Tensor x);", source, functions=["run"]).run(x)
print("load_inline", x.tolist() == [6] * 5)
try:
    import cupy
except ImportError:
    print("cupy", True)
else:
    y = cupy.ones(5, dtype="f4")
    cupy.RawKernel('extern "C" __global__ void four(float* x) { x[threadIdx.x] *= 4; }', "four")((1,), (5,), (y,))
    print("cupy", y.tolist() == [4] * 5)
try:
    from numba import cuda
    cuda.to_device
except (ImportError, AttributeError):
    print("numba", True)
else:
    import numpy
    numpy.row_stack = numpy.vstack  # removed in NumPy 2.5, but numba-cuda 0.30 uses it
    @cuda.jit
    def five(x):
        x[cuda.grid(1)] *= 5
    z = cuda.to_device(__import__("numpy").ones(4))
    five[1, 4](z)
    print("numba", z.copy_to_host().tolist() == [5] * 4)
"""


@pytest.mark.timeout(300)
def test_the_tools_of_the_course_work(cage):
    """The tools are torch, Triton's interpreter, Numba's simulator, the C++ compiler and ninja."""
    caged = cage("bubblewrap", TOOLS + BUILD + DONE)
    out = caged.process.stdout.read().decode()
    assert out.endswith("tools done\n"), out
    assert "False" not in out
    assert caged.process.wait() == 0


def test_without_a_gpu_it_opens_no_gpu_node(told):
    """Other devices can be opened."""
    found = told("bubblewrap", GPU_NODES + "tell(gpus=lambda: nodes, null=lambda: opened('/dev/null'))")
    assert found == {"gpus": 0, "null": True}


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["bubblewrap", "none"])
def test_the_tools_of_the_course_work_on_a_gpu(form, cage):
    """The tools are torch and its compiler, Triton, nvcc under ninja, and CuPy and Numba if installed."""
    caged = cage(form, GPU_NODES + GPU_TOOLS + DONE, device="cuda")
    out = caged.process.stdout.read().decode()
    assert out.endswith("tools done\n"), out
    assert "gpus 1 1\n" in out
    assert "False" not in out
