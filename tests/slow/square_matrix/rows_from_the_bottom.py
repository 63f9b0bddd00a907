# slow: each element's row and column come from divisions of 64-bit integers by the width
# cause: other
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
using Index = long long;

struct Matrix {
    Index rows, columns;
    __device__ Index from_bottom(Index i) const {
        Index row = rows - 1 - i / columns;
        return row * columns + i % columns;
    }
};

__global__ void square_kernel(const float* __restrict__ x, float* __restrict__ out, Matrix m) {
    Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m.rows * m.columns) return;
    Index at = m.from_bottom(i);
    out[at] = x[at] * x[at];
}

extern "C" const char* square(const float* x, float* out, Index rows, Index columns) {
    Matrix m = {rows, columns};
    square_kernel<<<(rows * columns + 511) / 512, 512>>>(x, out, m);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_bottom", cuda_sources=cuda_source, **options))
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong]
    built.square.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    error = library().square(x.data_ptr(), out.data_ptr(), *x.shape)
    if error:
        raise RuntimeError(error.decode())
