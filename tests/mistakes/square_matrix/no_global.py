# mistake: the word `__global__` is missing
# says: Only a kernel can be launched with `<<<grid, block>>>`, and this function is not one.
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * x[i];
}
extern "C" void run(const float* x, float* out, int n) { k<<<(n + 255) / 256, 256>>>(x, out, n); }
"""


@cache
def library():
    built = ctypes.CDLL(
        load_inline(
            "square_no_global",
            cpp_sources="",
            cuda_sources=cuda_source,
            no_implicit_headers=True,
            is_python_module=False,
        )
    )
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return built


def square_matrix(x, out):
    library().run(x.data_ptr(), out.data_ptr(), x.numel())
