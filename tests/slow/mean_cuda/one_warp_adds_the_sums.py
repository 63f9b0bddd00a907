# slow: there is one sum per 256 elements, and one warp adds them all
# cause: serial tail
# blind: missed
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__device__ double warp_sum(double v) {
    #pragma unroll
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    return v;
}

__global__ void first_stage(const float* __restrict__ x, double* __restrict__ partial, int n) {
    __shared__ double warps[8];
    int i = blockIdx.x * 256 + threadIdx.x;
    double v = warp_sum(i < n ? (double)x[i] : 0.0);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        double s = 0.0;
        for (double w : warps) s += w;
        partial[blockIdx.x] = s;
    }
}

__global__ void second_stage(const double* __restrict__ partial, int count, float* out, int n) {
    double v = 0.0;
    for (int i = threadIdx.x; i < count; i += 32) v += partial[i];
    v = warp_sum(v);
    if (threadIdx.x == 0) *out = v / n;
}

extern "C" const char* run(const float* x, double* partial, float* out, int n) {
    int blocks = (n + 255) / 256;
    first_stage<<<blocks, 256>>>(x, partial, n);
    second_stage<<<1, 32>>>(partial, blocks, out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_stages", cuda_sources=cuda_source, **options))
    built.run.argtypes = [*[ctypes.c_void_p] * 3, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def mean_cuda(x, out):
    n = x.numel()
    partial = torch.empty(-(-n // 256), dtype=torch.float64, device=x.device)
    error = library().run(x.data_ptr(), partial.data_ptr(), out.data_ptr(), n)
    if error:
        raise RuntimeError(error.decode())
