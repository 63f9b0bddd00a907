# slow: 64 blocks go through all tiles
# cause: few programs
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void transpose_kernel(const float* x, float* out, int height, int width) {
    __shared__ float tile[32][33];
    int across = (width + 31) / 32, tiles = across * ((height + 31) / 32);
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        int first_row = t / across * 32, first_column = t % across * 32;
        int row = first_row + threadIdx.y, column = first_column + threadIdx.x;
        if (row < height && column < width) tile[threadIdx.y][threadIdx.x] = x[row * width + column];
        __syncthreads();
        row = first_column + threadIdx.y, column = first_row + threadIdx.x;
        if (row < width && column < height) out[row * height + column] = tile[threadIdx.x][threadIdx.y];
        __syncthreads();
    }
}

extern "C" const char* run(const float* x, float* out, int height, int width) {
    dim3 block(32, 32);
    transpose_kernel<<<64, block>>>(x, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("transpose", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def transpose(x, out):
    height, width = x.shape
    error = library().run(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
