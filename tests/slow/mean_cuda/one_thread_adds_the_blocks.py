# slow: one thread of the last block adds the sums of 4,096 blocks in turn while the GPU is idle
# cause: serial tail
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define THREADS 256
#define MOST_BLOCKS 4096  // no launch may have more

__device__ double partials[MOST_BLOCKS];  // the sums of the blocks; each launch writes them again
__device__ unsigned int ticket;  // how many blocks are done; the last one sets it back to 0

// The sum of the values of a block's threads. Only thread 0 needs the result.
__device__ double block_sum(double value) {
    __shared__ double of_warp[THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < THREADS / 32 ? of_warp[threadIdx.x] : 0.0;
        for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    }
    return value;
}

// The sum of the elements that this thread takes. There are `gridDim.x * THREADS` threads in all.
__device__ double thread_sum(const float* __restrict__ x, int n) {
    double sum = 0.0;
    const float4* quads = reinterpret_cast<const float4*>(x);
    int thread = blockIdx.x * THREADS + threadIdx.x, step = gridDim.x * THREADS, i = thread;
    for (; i + 3 * step < n / 4; i += 4 * step) {
        float4 a = quads[i], b = quads[i + step], c = quads[i + 2 * step], d = quads[i + 3 * step];
        sum += (a.x + a.y) + (a.z + a.w);
        sum += (b.x + b.y) + (b.z + b.w);
        sum += (c.x + c.y) + (c.z + c.w);
        sum += (d.x + d.y) + (d.z + d.w);
    }
    for (; i < n / 4; i += step) {
        float4 a = quads[i];
        sum += (a.x + a.y) + (a.z + a.w);
    }
    if (thread < n % 4) sum += x[n / 4 * 4 + thread];  // what is left over
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
    if (threadIdx.x == 0) {
        sum = 0.0;
        for (int block = 0; block < gridDim.x; block++) sum += partials[block];
        *out = sum / n;
    }
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
    blocks = min(4096, (n + 1023) // 1024)  # as many as `partials` has places
    error = library().mean(x.data_ptr(), out.data_ptr(), n, blocks)
    if error:
        raise RuntimeError(error.decode())
