# mistake: one float32 adds all elements in turn
# says: Do not add all values to one float32 in turn
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void mean_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, x[i]);
}

__global__ void divide_kernel(float* out, int n) { *out /= n; }

extern "C" void mean(const float* x, float* out, int n) {
    cudaMemsetAsync(out, 0, sizeof(float));
    mean_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
    divide_kernel<<<1, 1>>>(out, n);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_cuda", cuda_sources=cuda_source, **options))
    built.mean.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return built


def mean_cuda(x, out):
    library().mean(x.data_ptr(), out.data_ptr(), x.numel())
