# slow: one block adds up everything
# cause: few programs
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void mean_kernel(const float* x, float* out, int n) {
    __shared__ double sums[1024];
    double sum = 0.0;
    for (int i = threadIdx.x; i < n; i += 1024) sum += x[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 512; step > 0; step /= 2) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = sums[0] / n;
}

extern "C" const char* run(const float* x, float* out, int n) {
    mean_kernel<<<1, 1024>>>(x, out, n);
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
