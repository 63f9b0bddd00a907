# mistake: the operator of a struct lacks __device__, and the struct is passed to a kernel template
# says: Device code calls `Square::operator
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
struct Square {
    float operator()(float v) const { return v * v; }
};

template <typename F>
__global__ void square_kernel(F f, const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < height && column < width) {
        int i = row * width + column;
        out[i] = f(x[i]);
    }
}

extern "C" const char* square(const float* x, float* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid(1, 1);
    grid.x = (width + 31) / 32;
    grid.y = (height + 7) / 8;
    square_kernel<<<grid, block>>>(Square{}, x, out, height, width);
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
