# right: two halves on two streams of its own, joined by events, and a pinned parameter
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <cstdio>

__global__ void add_half(const float* x, double* total, const int* first, int n) {
    double sum = 0.0;
    for (int i = *first + blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    sum += __shfl_down_sync(~0u, sum, 16);
    sum += __shfl_down_sync(~0u, sum, 8);
    sum += __shfl_down_sync(~0u, sum, 4);
    sum += __shfl_down_sync(~0u, sum, 2);
    sum += __shfl_down_sync(~0u, sum, 1);
    if ((threadIdx.x & 31) == 0) atomicAdd(total, sum);
}

__global__ void finish(const double* totals, float* out, int n) { out[0] = (totals[0] + totals[1]) / n; }

#define CHECK(call)                                                                     \
    do {                                                                                \
        cudaError_t status = (call);                                                    \
        if (status != cudaSuccess) printf("%s: %s\n", #call, cudaGetErrorString(status)); \
    } while (0)

extern "C" void mean(const float* x, float* out, int n) {
    static cudaStream_t streams[2];
    static cudaEvent_t begun, ended[2];
    static double* totals;
    static int *pinned, *first;
    if (!totals) {
        for (int k = 0; k < 2; k++) {
            CHECK(cudaStreamCreateWithFlags(&streams[k], cudaStreamNonBlocking));
            CHECK(cudaEventCreateWithFlags(&ended[k], cudaEventDisableTiming));
        }
        CHECK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
        CHECK(cudaMalloc(&totals, 2 * sizeof(double)));
        CHECK(cudaMalloc(&first, 2 * sizeof(int)));
        CHECK(cudaHostAlloc(&pinned, 2 * sizeof(int), cudaHostAllocDefault));
    }
    CHECK(cudaStreamSynchronize(0));
    pinned[0] = 0, pinned[1] = n / 2;
    CHECK(cudaMemcpyAsync(first, pinned, 2 * sizeof(int), cudaMemcpyHostToDevice, 0));
    CHECK(cudaMemsetAsync(totals, 0, 2 * sizeof(double), 0));
    CHECK(cudaEventRecord(begun, 0));
    for (int k = 0; k < 2; k++) {
        CHECK(cudaStreamWaitEvent(streams[k], begun, 0));
        int end = k ? n : pinned[1];
        add_half<<<96, 256, 0, streams[k]>>>(x, totals + k, first + k, end);
        CHECK(cudaEventRecord(ended[k], streams[k]));
        CHECK(cudaStreamWaitEvent(0, ended[k], 0));
    }
    finish<<<1, 1>>>(totals, out, n);
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
