# mistake: block_sum returns each thread's own sum
# says: Only thread 0's own elements were counted
# runs: anywhere

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
    return value;
}

// The sum of the elements that this thread takes. There are `gridDim.x * THREADS` threads in all.
__device__ double thread_sum(const float* __restrict__ x, int n) {
    double sum = 0.0;
    int threads = gridDim.x * THREADS;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += threads) sum += x[i];
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
    double total = 0.0;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS) total += partials[i];
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
    blocks = 1
    error = library().mean(x.data_ptr(), out.data_ptr(), n, blocks)
    if error:
        raise RuntimeError(error.decode())
