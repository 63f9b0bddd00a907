# right: threadFenceReduction of the CUDA samples: the block that ends last adds the sums
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__device__ unsigned int retirement_count = 0;
__shared__ bool am_last;

__device__ float reduce_block(float sum, float* sdata) {
    unsigned int tid = threadIdx.x;
    sdata[tid] = sum;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 32; s >>= 1) {
        if (tid < s) sdata[tid] = sum = sum + sdata[tid + s];
        __syncthreads();
    }
    if (tid < 32) {
        sum += sdata[tid + 32];
        for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    }
    return sum;
}

__global__ void reduce_single_pass(const float* g_idata, volatile float* g_odata, float* result, unsigned int n) {
    extern __shared__ float sdata[];
    float sum = 0.0f;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += g_idata[i];
    sum = reduce_block(sum, sdata);
    if (threadIdx.x == 0) {
        g_odata[blockIdx.x] = sum;
        __threadfence();
        unsigned int ticket = atomicInc(&retirement_count, gridDim.x);
        am_last = ticket == gridDim.x - 1;
    }
    __syncthreads();
    if (!am_last) return;
    sum = 0.0f;
    for (unsigned int i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += g_odata[i];
    __syncthreads();
    sum = reduce_block(sum, sdata);
    if (threadIdx.x == 0) {
        *result = sum / n;
        retirement_count = 0;
    }
}

extern "C" void mean(const float* x, float* out, int n) {
    static float* sums = nullptr;
    if (!sums) cudaMalloc((void**)&sums, 256 * sizeof(float));
    int blocks = min(256, (n + 127) / 128);
    reduce_single_pass<<<blocks, 128, 128 * sizeof(float)>>>(x, sums, out, n);
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
