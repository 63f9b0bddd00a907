# right: printf and stderr behind macros, assert, device helpers with default arguments, __clz, __activemask
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <assert.h>
#include <stdio.h>

#ifdef DEBUG
#define LOG(...) printf(__VA_ARGS__)
#else
#define LOG(...)
#endif

__device__ __forceinline__ int global_id(int scale = 1) { return (blockIdx.x * blockDim.x + threadIdx.x) * scale; }

__device__ int next_power_of_two(unsigned int v) { return v <= 1 ? 1 : 1 << (32 - __clz(v - 1)); }

__global__ void partial_sums(const float* __restrict__ x, double* __restrict__ out, const long long n) {
    extern __shared__ double smem[];
    assert(blockDim.x <= 1024);
    double acc = 0;
    for (long long i = global_id(); i < n; i += (long long)gridDim.x * blockDim.x) acc += (double)x[i];
    smem[threadIdx.x] = acc;
    for (int s = next_power_of_two(blockDim.x) >> 1; s >= 1; s >>= 1) {
        __syncthreads();
        if (threadIdx.x < s && threadIdx.x + s < blockDim.x) smem[threadIdx.x] += smem[threadIdx.x + s];
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = smem[0];
        LOG("block %d: %f\n", blockIdx.x, smem[0]);
        if (n < 0) printf("negative length %lld\n", n);
    }
}

__global__ void mean_of(const double* __restrict__ partial, float* out, const int blocks, const long long n) {
    double acc = 0;
    for (int i = threadIdx.x; i < blocks; i += 32) acc += partial[i];
    for (int d = 16; d; d >>= 1) acc += __shfl_xor_sync(__activemask(), acc, d);
    if (threadIdx.x == 0) *out = __double2float_rn(acc / n);
}

extern "C" void mean(const float* x, float* out, int n) {
    const int threads = 192, blocks = 80;
    double* partial;
    cudaError_t err = cudaMalloc((void**)&partial, blocks * sizeof(double));
    if (err != cudaSuccess) {
        fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(err));
        return;
    }
    partial_sums<<<blocks, threads, threads * sizeof(double)>>>(x, partial, n);
    mean_of<<<1, 32>>>(partial, out, blocks, n);
    err = cudaGetLastError();
    if (err == cudaSuccess) err = cudaDeviceSynchronize();
    if (err != cudaSuccess) fprintf(stderr, "%s\n", cudaGetErrorName(err));
    cudaFree(partial);
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
