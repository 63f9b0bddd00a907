# mistake: the steps of the tree follow each other without a barrier
# says: No `__syncthreads()` is between the two
# runs: simulator

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void mean_kernel(const float* x, float* out, int n) {
    __shared__ float sums[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2)
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    if (threadIdx.x == 0) atomicAdd(out, sums[0] / n);
}

extern "C" void mean(const float* x, float* out, int n) {
    cudaMemsetAsync(out, 0, sizeof(float));
    mean_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
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
