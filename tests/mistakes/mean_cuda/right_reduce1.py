# right: interleaved addressing, as in NVIDIA's slides on reductions, launched until one sum is left
# runs: anywhere

import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void reduce1(const float* g_idata, float* g_odata, unsigned int n) {
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (i < n) ? g_idata[i] : 0;
    __syncthreads();
    for (unsigned int s = 1; s < blockDim.x; s *= 2) {
        int index = 2 * s * tid;
        if (index < blockDim.x) sdata[index] += sdata[index + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

__global__ void divide(const float* sum, float* out, unsigned int n) { *out = *sum / n; }

extern "C" void mean(const float* x, float* out, float* first, float* second, unsigned int n) {
    const unsigned int threads = 256;
    const float* in = x;
    for (unsigned int left = n; in == x || left > 1; left = (left + threads - 1) / threads) {
        float* sums = in == first ? second : first;
        reduce1<<<(left + threads - 1) / threads, threads, threads * sizeof(float)>>>(in, sums, left);
        in = sums;
    }
    divide<<<1, 1>>>(in, out, n);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_cuda", cuda_sources=cuda_source, **options))
    built.mean.argtypes = [*[ctypes.c_void_p] * 4, ctypes.c_uint]
    return built


@cache
def scratch(device, n):
    return [torch.empty((n + 255) // 256, device=device) for _ in range(2)]


def mean_cuda(x, out):
    first, second = scratch(x.device, x.numel())
    library().mean(x.data_ptr(), out.data_ptr(), first.data_ptr(), second.data_ptr(), x.numel())
