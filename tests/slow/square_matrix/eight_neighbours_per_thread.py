# slow: a thread takes eight adjacent elements, so that a warp's accesses are 32 bytes apart
# cause: wasted sectors
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define PER_THREAD 8
#define THREADS 128

__global__ void square_kernel(const float* x, float* out, int n) {
    int begin = (blockIdx.x * THREADS + threadIdx.x) * PER_THREAD;
    int end = min(begin + PER_THREAD, n);
    while (begin < end) {
        float v = x[begin];
        out[begin] = v * v;
        ++begin;
    }
}

extern "C" const char* square(const float* x, float* out, int n) {
    int per_block = THREADS * PER_THREAD;
    square_kernel<<<(n + per_block - 1) / per_block, THREADS>>>(x, out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_eight", cuda_sources=cuda_source, **options))
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    built.square.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    error = library().square(x.data_ptr(), out.data_ptr(), x.numel())
    if error:
        raise RuntimeError(error.decode())
