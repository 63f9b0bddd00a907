# mistake: the sums of the blocks go to a std::vector, which the kernel gets by its address
# says: passes memory that the host allocated
# runs: simulator

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <vector>

__global__ void sum_kernel(const float* x, float* sums, int n) {
    __shared__ float tree[256];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = tree[0];
}

extern "C" void mean(const float* x, float* out, int n) {
    std::vector<float> sums(64);
    sum_kernel<<<64, 256>>>(x, sums.data(), n);
    cudaDeviceSynchronize();
    double total = 0.0;
    for (float sum : sums) total += sum;
    float mean = total / n;
    cudaMemcpy(out, &mean, sizeof mean, cudaMemcpyHostToDevice);
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
