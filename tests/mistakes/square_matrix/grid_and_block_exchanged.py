# mistake: the grid and the block are exchanged in the launch
# says: A launch names the grid first: `<<<grid, block>>>`
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void square_kernel(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < height && column < width) {
        float value = x[row * width + column];
        out[row * width + column] = value * value;
    }
}

extern "C" const char* square(const float* x, float* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid(1, 1);
    grid.x = (width + block.x - 1) / block.x;
    grid.y = (height + block.y - 1) / block.y;
    square_kernel<<<block, grid>>>(x, out, height, width);
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
