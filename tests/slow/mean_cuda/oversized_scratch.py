# slow: 48 kB of shared memory per block of 64 threads leave each SM with few warps
# cause: low occupancy
# blind: missed
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define SLOTS 6144  // as many doubles as fit
#define CREW 64

__global__ void gather(const float* __restrict__ x, double* __restrict__ sums, int n) {
    __shared__ double scratch[SLOTS];
    for (int s = threadIdx.x; s < SLOTS; s += CREW) scratch[s] = 0.0;
    double mine = 0.0;
    for (int i = blockIdx.x * CREW + threadIdx.x; i < n; i += gridDim.x * CREW) mine += x[i];
    scratch[threadIdx.x] = mine;
    __syncthreads();
    for (int half = CREW / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = scratch[0];
}

__global__ void conclude(const double* sums, int count, float* out, int n) {
    __shared__ double of_thread[256];
    double total = 0.0;
    for (int i = threadIdx.x; i < count; i += 256) total += sums[i];
    of_thread[threadIdx.x] = total;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) of_thread[threadIdx.x] += of_thread[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[0] = of_thread[0] / n;
}

extern "C" const char* mean(const float* x, double* sums, float* out, int n, int blocks) {
    gather<<<blocks, CREW>>>(x, sums, n);
    conclude<<<1, 256>>>(sums, blocks, out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_scratch", cuda_sources=cuda_source, **options))
    built.mean.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 2]
    built.mean.restype = ctypes.c_char_p
    return built


def mean_cuda(x, out):
    n = x.numel()
    blocks = min(2048, (n + 63) // 64)
    sums = torch.empty(blocks, dtype=torch.float64, device=x.device)
    error = library().mean(x.data_ptr(), sums.data_ptr(), out.data_ptr(), n, blocks)
    if error:
        raise RuntimeError(error.decode())
