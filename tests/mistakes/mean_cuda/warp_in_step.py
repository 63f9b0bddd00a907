# mistake: the last warp adds in step, without `__syncwarp()`
# says: No `__syncwarp()` or `__syncthreads()` is between the two
# runs: simulator
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void total(const float* x, double* sum, int n) {
    __shared__ volatile double parts[256];
    const int me = threadIdx.x;
    double mine = 0.0;
    for (int i = blockIdx.x * 256 + me; i < n; i += gridDim.x * 256) mine += x[i];
    parts[me] = mine;
    __syncthreads();
    for (int half = 128; half > 32; half /= 2) {
        if (me < half) parts[me] += parts[me + half];
        __syncthreads();
    }
    if (me < 32) {
        for (int half = 32; half > 0; half /= 2) parts[me] += parts[me + half];
    }
    if (me == 0) atomicAdd(sum, parts[0]);
}
__global__ void divide(const double* sum, float* out, int n) { *out = *sum / n; }

extern "C" void mean(const float* x, double* sum, float* out, int n) {
    total<<<16, 256>>>(x, sum, n);
    divide<<<1, 1>>>(sum, out, n);
}
"""


@cache
def library():
    built = ctypes.CDLL(
        load_inline(
            "in_step", cpp_sources="", cuda_sources=cuda_source, no_implicit_headers=True, is_python_module=False
        )
    )
    built.mean.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int]
    return built


def mean_cuda(x, out):
    total = torch.zeros(1, dtype=torch.float64, device=x.device)
    library().mean(x.data_ptr(), total.data_ptr(), out.data_ptr(), x.numel())
