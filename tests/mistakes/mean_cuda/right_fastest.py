# right: loads that mark their lines as the first to be replaced, and neighbouring pieces for each block
# runs: anywhere
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define THREADS 512
#define LOADS 4  // of 16 bytes, in flight per thread
#define MOST_BLOCKS 4096

__device__ double partials[MOST_BLOCKS];
__device__ unsigned int ticket;

__device__ double block_sum(double value) {
    __shared__ double of_warp[THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    __syncthreads();  // the warps' sums of an earlier call were read
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < THREADS / 32 ? of_warp[threadIdx.x] : 0.0;
        for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    }
    return value;
}

__device__ float sum_of(float4 quad) { return (quad.x + quad.y) + (quad.z + quad.w); }

__device__ double thread_sum(const float* __restrict__ x, int n) {
    const float4* quads = reinterpret_cast<const float4*>(x);
    double sum = 0.0;
    int i = blockIdx.x * LOADS * THREADS + threadIdx.x;
    for (; i + (LOADS - 1) * THREADS < n / 4; i += gridDim.x * LOADS * THREADS) {
        float4 found[LOADS];
        #pragma unroll
        for (int k = 0; k < LOADS; k++) found[k] = __ldcs(quads + i + k * THREADS);
        float of_loads = 0.0f;
        #pragma unroll
        for (int k = 0; k < LOADS; k++) of_loads += sum_of(found[k]);
        sum += of_loads;
    }
    for (int k = 0; k < LOADS; k++)
        if (i + k * THREADS < n / 4) sum += sum_of(quads[i + k * THREADS]);
    if (blockIdx.x == 0 && threadIdx.x < n % 4) sum += x[n / 4 * 4 + threadIdx.x];
    return sum;
}

__global__ void mean_kernel(const float* __restrict__ x, float* __restrict__ out, int n) {
    __shared__ bool last;
    double sum = block_sum(thread_sum(x, n));
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    sum = 0.0;
    for (int block = threadIdx.x; block < gridDim.x; block += THREADS) sum += partials[block];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sum / n;
}

extern "C" const char* mean(const float* x, float* out, int n, int blocks) {
    mean_kernel<<<blocks, THREADS>>>(x, out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_fastest", cuda_sources=cuda_source, **options))
    built.mean.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.mean.restype = ctypes.c_char_p
    return built


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def mean_cuda(x, out):
    n = x.numel()
    blocks = min(4 * sm_count(x.device), (n + 8191) // 8192)
    error = library().mean(x.data_ptr(), out.data_ptr(), n, blocks)
    if error:
        raise RuntimeError(error.decode())
