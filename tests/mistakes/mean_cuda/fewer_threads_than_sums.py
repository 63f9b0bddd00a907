# mistake: each thread of the last block takes one sum, and there are more
# says: there may be more than a block has threads
# runs: simulator
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define THREADS 256
#define MOST_BLOCKS 4096  // no launch may have more

__device__ double partials[MOST_BLOCKS];  // the sums of the blocks; each launch writes them anew
__device__ unsigned int ticket;  // how many blocks are done; the last one sets it back to 0

// The sum of the values of a block's threads. Only thread 0 needs the result.
__device__ double block_sum(double value) {
    __shared__ double sums[THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffff, value, offset);
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    if (lane == 0) sums[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < THREADS / 32 ? sums[lane] : 0.0;
        for (int offset = 16; offset > 0; offset /= 2)
            value += __shfl_down_sync(0xffffffff, value, offset);
    }
    return value;
}

// The sum of the elements that this thread takes. There are `gridDim.x * THREADS` threads in all.
__device__ double thread_sum(const float* __restrict__ x, int n) {
    double sum = 0.0;
    const float4* x4 = reinterpret_cast<const float4*>(x);
    int threads = gridDim.x * THREADS;
    int first = blockIdx.x * THREADS + threadIdx.x;
    #pragma unroll 4
    for (int i = first; i < n / 4; i += threads) {
        float4 v = x4[i];
        sum += (double)v.x + v.y + v.z + v.w;
    }
    for (int i = n / 4 * 4 + first; i < n; i += threads) sum += x[i];
    return sum;
}

__global__ void mean_kernel(const float* __restrict__ x, float* __restrict__ out, int n) {
    __shared__ bool last;
    double sum = block_sum(thread_sum(x, n));
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();  // the sum is there before the ticket says so
        last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();  // what follows sees what the others wrote before their tickets
    double total = threadIdx.x < gridDim.x ? partials[threadIdx.x] : 0.0;
    total = block_sum(total);
    if (threadIdx.x == 0) out[0] = total / n;
}

extern "C" const char* mean(const float* x, float* out, int n, int blocks) {
    if (blocks > MOST_BLOCKS) return "more blocks than `partials` has places";
    mean_kernel<<<blocks, THREADS>>>(x, out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_cuda", cuda_sources=cuda_source, **options))
    built.mean.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.mean.restype = ctypes.c_char_p
    return built


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def mean_cuda(x, out):
    n = x.numel()
    blocks = max(1, min(8 * sm_count(x.device), (n + 1023) // 1024))
    error = library().mean(x.data_ptr(), out.data_ptr(), n, blocks)
    if error:
        raise RuntimeError(error.decode())
