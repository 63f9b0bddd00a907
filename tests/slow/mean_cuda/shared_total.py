# slow: every element is added to one total in shared memory
# cause: atomics
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__device__ double grand_total;

__global__ void reset() { grand_total = 0.0; }

__global__ void accumulate(const float* __restrict__ x, int n) {
    __shared__ double block_total;
    if (threadIdx.x == 0) block_total = 0.0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&block_total, (double)x[i]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&grand_total, block_total);
}

__global__ void divide(float* out, int n) { out[0] = (float)(grand_total / n); }

extern "C" const char* run(const float* x, float* out, int n) {
    int blocks = (n + 511) / 512;
    if (blocks > 1024) blocks = 1024;
    reset<<<1, 1>>>();
    accumulate<<<blocks, 512>>>(x, n);
    divide<<<1, 1>>>(out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_shared", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def mean_cuda(x, out):
    error = library().run(x.data_ptr(), out.data_ptr(), x.numel())
    if error:
        raise RuntimeError(error.decode())
