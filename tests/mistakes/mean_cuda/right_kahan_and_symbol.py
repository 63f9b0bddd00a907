# right: compensated sums in float, a table in constant memory, sums in a device variable read by cudaMemcpyFromSymbol
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <vector>

__constant__ int shape[2];
__device__ float sums[1024];

__global__ void kahan(const float* x) {
    int n = shape[0], threads = shape[1], t = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f, c = 0.0f;
    for (int i = t; i < n; i += threads) {
        float y = __fsub_rn(x[i], c), next = __fadd_rn(sum, y);
        c = __fsub_rn(__fsub_rn(next, sum), y);
        sum = next;
    }
    sums[t] = sum;
}

extern "C" void mean(const float* x, float* out, int n) {
    const int host_shape[2] = {n, 1024};
    cudaMemcpyToSymbol(shape, host_shape, sizeof host_shape);
    kahan<<<8, 128>>>(x);
    std::vector<float> found(1024);
    cudaMemcpyFromSymbol(found.data(), sums, found.size() * sizeof(float));
    double total = 0.0;
    for (float sum : found) total += sum;
    float result = total / n;
    cudaMemcpy(out, &result, sizeof result, cudaMemcpyHostToDevice);
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
