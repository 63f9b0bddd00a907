# mistake: the bounds check lets one element too many through
# says: does the bounds check use `<`, not `<=`?
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void square_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = x[i] * x[i];
}
extern "C" const char* run(const float* x, float* out, int h, int w) {
    int n = h * w;
    square_kernel<<<n / 256 + 1, 256>>>(x, out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_matrix", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    height, width = x.shape
    error = library().run(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
