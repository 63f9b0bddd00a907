# slow: each block asks for 48 KB of shared memory, so that few blocks fit on an SM
# cause: low occupancy
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void square_kernel(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    __shared__ float tile[12288];  // 48 KB, of which a block uses 64 elements
    int column = blockIdx.x * 64 + threadIdx.x, row = blockIdx.y;
    if (column >= width) return;
    tile[threadIdx.x] = x[row * width + column];
    out[row * width + column] = tile[threadIdx.x] * tile[threadIdx.x];
}

extern "C" const char* square(const float* x, float* out, int height, int width) {
    dim3 grid((width + 63) / 64, height);
    square_kernel<<<grid, 64>>>(x, out, height, width);
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
