# right: two stages on two streams that the default stream waits for, ordered by an event
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void total(const float* x, double* sum, int n) {
    double mine = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
    for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(0xffffffff, mine, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

__global__ void divide(const double* sum, float* out, int n) { out[0] = *sum / n; }

extern "C" void mean(const float* x, float* out, int n) {
    static cudaStream_t first, second;
    static cudaEvent_t added;
    static double* sum;
    if (!sum) {
        cudaEventCreateWithFlags(&added, cudaEventDisableTiming);
        cudaStreamCreate(&first);
        cudaStreamCreate(&second);
        cudaMalloc(&sum, sizeof(double));
    }
    cudaMemsetAsync(sum, 0, sizeof(double), first);
    total<<<64, 256, 0, first>>>(x, sum, n);
    cudaEventRecord(added, first);
    cudaStreamWaitEvent(second, added, 0);
    divide<<<1, 1, 0, second>>>(sum, out, n);
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
