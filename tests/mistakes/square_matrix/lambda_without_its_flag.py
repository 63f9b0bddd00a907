# mistake: a lambda for the GPU, and nvcc does not get its flag for these
# says: Pass `extra_cuda_cflags=["--extended-lambda"]` to `load_inline`
# runs: anywhere
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <typename F>
__global__ void for_each_index(int n, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}

extern "C" const char* square(const float* x, float* out, int height, int width) {
    int n = height * width;
    for_each_index<<<(n + 255) / 256, 256>>>(n, [=] __device__ (int i) { out[i] = x[i] * x[i]; });
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_matrix", cuda_sources=cuda_source, **options))
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.square.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    height, width = x.shape
    error = library().square(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
