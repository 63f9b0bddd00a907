# mistake: a kernel calls a function of the host
# says: calling a __host__ function("same") from a __global__ function("square_kernel")
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
static int same(int i) { return i; }
template <typename T, int N = 1>
__global__ void square_kernel(const T* x, T* out, int n, int offset = 0) {
    __shared__ int where[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    where[threadIdx.x] = same(i + offset);
    if (i < n) out[where[threadIdx.x]] = x[where[threadIdx.x]] * x[where[threadIdx.x]];
}
extern "C" const char* run(const float* x, float* out, int h, int w) {
    int n = h * w;
    square_kernel<float><<<(n + 255) / 256, 256>>>(x, out, n, 0);
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
