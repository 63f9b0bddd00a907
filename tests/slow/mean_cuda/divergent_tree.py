# slow: every second, fourth, eighth … thread adds, so that warps diverge
# cause: divergence
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__device__ double total;

__global__ void clear() { total = 0.0; }

__global__ void sums(const float* x, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        if (threadIdx.x % (2 * step) == 0) s[threadIdx.x] += s[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(&total, (double)s[0]);
}

__global__ void finish(float* out, int n) { *out = total / n; }

extern "C" const char* run(const float* x, float* out, int n) {
    clear<<<1, 1>>>();
    sums<<<(n + 255) / 256, 256>>>(x, n);
    finish<<<1, 1>>>(out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_cuda", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def mean_cuda(x, out):
    error = library().run(x.data_ptr(), out.data_ptr(), x.numel())
    if error:
        raise RuntimeError(error.decode())
