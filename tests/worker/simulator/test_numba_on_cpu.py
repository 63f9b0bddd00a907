"""Numba's simulator in a worker accepts and refuses what a GPU does. Each test runs in a separate process."""

from __future__ import annotations

import pytest

_BEGIN = """
import math
import numba
import numpy as np
import torch
from numba import cuda, float32, float64, void
from grader.worker.arrays import numba_arrays
"""
_DOUBLE = """
def double(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 2 * x[i]
x, out = torch.arange(5.0), torch.zeros(5)
"""
_VECTORIZED = """
@numba.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
def add(a, b):
    return a + 2 * b
x = np.arange(3, dtype=np.float32)
"""
_LOCAL = """
def doubled(x, out):
    from numba import cuda as gpu
    n = 4

    @gpu.jit(device=True)
    def staged(value):
        part = gpu.shared.array(n, gpu.float32, alignment=16)
        part[gpu.threadIdx.x] = value
        gpu.syncthreads()
        return part[n - 1 - gpu.threadIdx.x]

    @gpu.jit(launch_bounds=(4, 2))
    def kernel(x, out):
        i = gpu.grid(1)
        out[i] = 2 * staged(x[i])
    kernel[1, n](x, out)
x, out = torch.arange(4.0), torch.zeros(4)
doubled(x, out)
print(out.tolist())
"""
_CHANGED = """
from grader.worker.simulator.accesses import take_observed
scale = 1
def scaled(x):
    x[cuda.threadIdx.x] *= scale
x = torch.ones(2)
kernel = DECORATED(scaled)
for scale in (1, 1, 2):
    kernel[1, 2](x)
    print(*[each["message"][:49] for each in take_observed()], end=";")
"""
_SUM = """
@cuda.jit
def total(x, out):
    part = cuda.shared.array(8, float32)
    i = cuda.threadIdx.x
    part[i] = x[i]
    cuda.syncthreads()
    if i == 0:
        for j in range(8):
            out[0] += part[j]
x, out = torch.arange(8.0), torch.zeros(1)
total[1, 8](*numba_arrays(x, out))
print(float(out))
"""
_OF_ARRAYS = """
@cuda.jit(device=True)
def total(values):
    found = 0.0
    for j in range(len(values)):
        found += values[j]
    return found

@cuda.jit
def totals(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = total(x)

@cuda.jit
def add_total(x, out):
    out[0] += total(out) + total(x)
x, out, one = torch.arange(3.0), torch.zeros(2), torch.full((1,), 2.0)
totals[2, 1](*numba_arrays(x, out))
add_total[1, 1](*numba_arrays(x, one))
print(out.tolist(), one.tolist())
"""


@pytest.mark.parametrize(
    ("body", "printed"),
    [
        (_DOUBLE + "cuda.jit(double)[1, 8](*numba_arrays(x, out))\nprint(out.tolist())", "[0.0, 2.0, 4.0, 6.0, 8.0]"),
        (
            _DOUBLE + "cuda.jit('void(float32[::1], float32[:])', fastmath=True, max_registers=32)(double)[2, 4]"
            "(*numba_arrays(x, out))\nprint(out.tolist())",
            "[0.0, 2.0, 4.0, 6.0, 8.0]",
        ),
        (
            _DOUBLE + "cuda.jit([void(float64[::1], float64[::1]), void(float32[::1], float32[::1])])(double)[2, 4]"
            "(*numba_arrays(x, out))\nprint(out.tolist())",
            "[0.0, 2.0, 4.0, 6.0, 8.0]",
        ),
        (
            _DOUBLE + "y = torch.full((5,), -1.0, dtype=torch.float64)\n"
            "cuda.jit(void(float32[::1], float32[::1]))(double)[2, 4](*numba_arrays(x, y))\n"
            "print(y.view(torch.float32)[:5].tolist(), y[3:].tolist())",
            "[0.0, 2.0, 4.0, 6.0, 8.0] [-1.0, -1.0]",
        ),
        (
            _DOUBLE + "x = torch.arange(8.)[::2]\n"
            "cuda.jit(void(float32[::1], float32[::1]))(double)[2, 4](*numba_arrays(x, out[:3]))\n"
            "print(out.tolist())",
            "[0.0, 2.0, 4.0, 0.0, 0.0]",
        ),
        (_SUM, "28.0"),
        (_LOCAL, "[6.0, 4.0, 2.0, 0.0]"),
        (_CHANGED.replace("DECORATED", "cuda.jit"), ";;`scale` has changed since the kernel was compiled;"),
        (
            _CHANGED.replace("DECORATED", "cuda.jit('void(float32[:])')"),
            ";;`scale` has changed since the kernel was compiled;",
        ),
        (
            "@numba.cuda.jit\ndef kernel(x):\n    part = numba.cuda.local.array(1, float32)\n    x[0] += part[0]\n"
            "x = np.ones(1, np.float32)\nkernel[1, 1](numba.cuda.InOut(x))\n"
            "print(x, cuda.get_current_device().WARP_SIZE)",
            "[nan] 32",
        ),
        (
            "from numba.cuda import libdevice\nprint(libdevice.sincosf(np.float32(0.5)), "
            "type(libdevice.fast_expf(np.float32(99))).__name__, libdevice.fmaf_rn(2.0, 3.0, 1.0))",
            "(np.float32(0.47942555), np.float32(0.87758255)) float32 7.0",
        ),
        (
            _VECTORIZED
            + "print(add(x, x), add(np.float64(1) * x, 1.0).dtype, type(add(cuda.to_device(x), x)) is type(x))",
            "[0. 3. 6.] float64 False",
        ),
        (
            _DOUBLE + "cuda.jit(void(float32[::1], float32[::1]))(cuda.jit(double))[1, 8](*numba_arrays(x, out))\n"
            "print(out.tolist())",
            "[0.0, 2.0, 4.0, 6.0, 8.0]",
        ),
        (_OF_ARRAYS, "[3.0, 3.0] [7.0]"),
        ("print(cuda.get_current_device().MULTIPROCESSOR_COUNT)", "1"),
        ("print(cuda.gpus[0].MULTIPROCESSOR_COUNT, cuda.select_device(0).WARP_SIZE, cuda.gpus[0].id)", "1 32 0"),
        ("print(cuda.get_current_device().compute_capability >= (7, 0))", "True"),
        ("print(math.isnan(cuda.device_array(3, np.float32)[2]))", "True"),
    ],
)
def test_it_runs_what_a_gpu_runs(fork_server, tmp_path, body, printed):
    """Lazy and compiled kernels, barriers and options work, in a function too; one signature takes any bytes.

    A kernel may be decorated again, and a device function may take arrays.

    Unwritten memory is NaN, and a variable that changes after the compilation is named.
    """
    status, output = fork_server.run(_BEGIN + body, tmp_path)
    assert (status, output.strip()) == (0, printed)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            _DOUBLE + "cuda.jit([void(float32[::1], float32[::1])])(double)[1, 8](*numba_arrays(x.double(), out))",
            "TypeError: No matching definition for argument type(s) array(float64, 1d, C), array(float32, 1d, C)",
        ),
        (
            _DOUBLE + "cuda.jit(void(float32[::1]))(double)[1, 8](*numba_arrays(x, out))",
            "TypeError: This kernel was compiled for another number of arguments: 1, and gets 2.",
        ),
        (
            _DOUBLE + "cuda.jit(void(float64[::1], float32[::1]))(double)[1, 8](*numba_arrays(x, out))",
            "it reads or writes past the end of the array, which has 20 B of the 40 B",
        ),
        (_VECTORIZED + "add(x.astype(np.complex64), x)", "TypeError: No matching version"),
        ("from numba.cuda import libdevice\nlibdevice.half2float(3)", "The simulator has no `libdevice.half2float`;"),
        (
            "numba.guvectorize(['void(float32[:], float32[:])'], '(n)->(n)', target='cuda')(lambda a, b: None)",
            "The simulator has no `guvectorize` with `target='cuda'`;",
        ),
        ("from numba.cuda import grid", "The simulator has no `from numba.cuda import grid`;"),
        ("cuda.compile_ptx(lambda x: None, (float32[:],))", "The simulator has no `cuda.compile_ptx`;"),
        (
            _DOUBLE + "cuda.jit(launch_bounds=4)(double)[1, 8](x, out)",
            "ValueError: A block of this launch has 8 threads, and the kernel's `launch_bounds` allow at most 4",
        ),
        (
            _DOUBLE + "cuda.jit('void(float32[::1], float32[::1])', launch_bounds=(4, 1))(double)[1, 8](x, out)",
            "and the kernel's `launch_bounds` allow at most 4",
        ),
        (
            _DOUBLE + "count = cuda.get_current_device().MULTIPROCESSOR_COUNT\n"
            "cuda.jit(double)[128, 20 * count](*numba_arrays(x, out))",
            "are grid and block exchanged?",
        ),
        (_DOUBLE + "cuda.jit(fast_math=True)(double)", "unexpected keyword argument 'fast_math'"),
        (
            _DOUBLE.replace("if i < out.size", "if True") + "cuda.jit(double)[1, 8](*numba_arrays(x, out))",
            "IndexError",
        ),
        (
            "import mmap, os\nfd = os.memfd_create('inputs'); os.ftruncate(fd, 64)\n"
            "import warnings; warnings.simplefilter('ignore')\n"
            "x = torch.frombuffer(mmap.mmap(fd, 64, prot=mmap.PROT_READ), dtype=torch.float32)\n"
            "numba_arrays(x)[0][0] = 1",
            "read-only",
        ),
    ],
)
def test_it_refuses_what_a_gpu_refuses(fork_server, tmp_path, body, error):
    """Arguments without a matching signature, unknown options, an index past the end, a write to an input.

    Blocks above the launch bounds, and what the simulator says that it lacks.
    """
    status, output = fork_server.run(_BEGIN + body, tmp_path)
    assert status != 0
    assert error in output.splitlines()[-1]
