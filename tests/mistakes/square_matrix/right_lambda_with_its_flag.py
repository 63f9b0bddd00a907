# right: a lambda for the GPU, with nvcc's flag, in a function that launches any lambda; another one counts blocks
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

template <typename F>
void parallel_for(int n, F f) {
    auto blocks = [](int count) { return (count + 255) / 256; };
    for_each_index<<<blocks(n), 256>>>(n, f);
}

extern "C" const char* square(const float* x, float* out, int height, int width) {
    parallel_for(height * width, [=] __device__ (int i) { out[i] = x[i] * x[i]; });
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {
        "cpp_sources": "",
        "no_implicit_headers": True,
        "is_python_module": False,
        "extra_cuda_cflags": ["--extended-lambda"],
    }
    built = ctypes.CDLL(load_inline("square_matrix", cuda_sources=cuda_source, **options))
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.square.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    height, width = x.shape
    error = library().square(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
