# right: one atomic per block, in double, and a kernel of one thread that divides and resets
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__device__ double total;

__global__ void add_kernel(const float* x, int n) {
    __shared__ double of_block;
    if (threadIdx.x == 0) of_block = 0.0;
    __syncthreads();
    double sum = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(&of_block, sum);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&total, of_block);
}

__global__ void finish_kernel(float* out, int n) {
    *out = total / n;
    total = 0.0;
}

extern "C" void mean(const float* x, float* out, int n) {
    add_kernel<<<256, 512>>>(x, n);
    finish_kernel<<<1, 1>>>(out, n);
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
